"""Searches of a workspace of real files by new questions, with and without looking at the files first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks import corpus
from benchmarks.cases.documents_index import copied, markdown_files
from benchmarks.harness.case import Case, Context, Timing
from recallite import Workspace
from recallite.embedding import load
from recallite_notes.config import SyncConfig, WorkspaceConfig

__all__ = ["CASE"]

_SYNC = {"files are looked at": True, "files are not looked at": False}


@contextmanager
def _setup(context: Context) -> Iterator[tuple[dict[str, Workspace], list[str]]]:
    files = markdown_files(context.need("data"), context.folder)[: context.records]
    folder = copied(files, context.folder / "searched")
    with Workspace(folder, embedder=context.model) as workspace:
        workspace.index()
    context.model.flush()
    lines = [line for file in files for line in file.read_text("utf-8").splitlines() if len(line.split()) > 8]
    queries = corpus.queries(lines[:: max(1, len(lines) // 2000)], context.rounds + 20)
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(
                Workspace(folder, WorkspaceConfig(sync=SyncConfig(on_search=sync)), embedder=load())
            )
            for name, sync in _SYNC.items()
        }
        yield opened, queries


def _tables(state: tuple[dict[str, Workspace], list[str]], context: Context) -> Iterator[Timing]:
    opened, queries = state
    ways = {
        name: lambda number, workspace=workspace: workspace.search(queries[number % len(queries)], min_score=0.0)
        for name, workspace in opened.items()
    }
    yield Timing("search, embedding included", ways, context.rounds)


CASE = Case(
    "documents_search", "how long a search of files takes", _setup, _tables, records=(300,), rounds=300, unit="files"
)
