"""Run as a script: builds, opens and asks a store with the engine that PYTHONPATH leads to.

A command is a line of JSON on stdin, its answer one on stdout. Only the engine's public interface is used, and nothing
that an older commit may lack without a word: what is not known is refused. The engine is imported by the name of the
one package under `engine/`, which was another once.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.compare.ways import TOP, Way
from benchmarks.dataset import FILTERS, Dataset, parts

# Both stores hold the same times, long past: the age of a record then changes no score between two rounds.
_BEGAN, _YEARS = datetime(2022, 1, 1, tzinfo=UTC), timedelta(days=730)

_OLDER = {"as_ranked": "ignore"}


class Store:
    """Two stores that the commands use: one with the vectors of the data, one with token codes too."""

    def __init__(self, engine: str, data: Path, folder: Path) -> None:
        self._engine = import_module(engine)
        self._data, self._folder = Dataset(data), folder
        self._opened: list[Any] = []
        self._seconds: dict[str, float] = {}

    def open(self) -> dict[str, Any]:
        """Build the store if there is none, open and warm it, and return the packages and seconds used."""
        _ = self._memory
        kernels = import_module(f"{self._engine.__name__}_kernels")
        return {"packages": [self._engine.__file__, kernels.__file__], **self._seconds}

    def known(self, options: dict[str, Any]) -> list[str]:
        """Return the options that `recall` accepts."""
        return [name for name, value in options.items() if _fault(self._ask, 0, Way({name: value})) is None]

    def refusal(self, way: dict[str, Any]) -> str | None:
        """Return the reason why this way cannot be used, or None; warms it up."""
        return _fault(self.round, way, [0, 1, 2])

    def round(self, way: dict[str, Any], places: list[int]) -> dict[str, Any]:
        """Times and answers of the questions at these places, one after the other or, with `many`, in one call.

        A hit's text is read while the clock runs: a commit may build hits when they are first looked at.
        """
        settings = Way(**way)
        milliseconds: list[float] = []
        processor: list[float] = []
        answers: list[Any] = []
        for some in [places] if settings.many else [[place] for place in places]:
            began, spent = time.perf_counter(), time.process_time()
            hit_lists = self._many(some, settings) if settings.many else [self._ask(some[0], settings)]
            for hits in hit_lists:
                _read(hits)
            processor.append((time.process_time() - spent) * 1e3 / len(some))
            milliseconds.append((time.perf_counter() - began) * 1e3 / len(some))
            answers += hit_lists
        return {"ms": milliseconds, "processor_ms": processor, "answers": [_answer(hits) for hits in answers]}

    def close(self) -> None:
        """Close what is open."""
        for memory in self._opened:
            memory.close()

    def _ask(self, place: int, way: Way) -> Any:
        if way.codes:
            self._at_hand.live = way.text
            return self._memory_with_codes.recall(
                self._data.questions[place], limit=TOP, **self._arguments(way.options)
            )
        vector = self._data.asked[place]
        return self._memory.recall(
            self._data.questions[place], vector=vector, limit=TOP, **self._arguments(way.options)
        )

    def _many(self, places: list[int], way: Way) -> list[Any]:
        texts, vectors = [self._data.questions[place] for place in places], list(self._data.asked[places])
        return list(self._memory.recall_many(texts, vectors=vectors, limit=TOP, **self._arguments(way.options)))

    @cached_property
    def _memory(self) -> Any:
        return self._made("vectors", None, self._data.vectors)

    @cached_property
    def _memory_with_codes(self) -> Any:
        return self._made("codes", self._at_hand, None)

    @cached_property
    def _at_hand(self) -> Any:
        # Here, because a commit before token codes cannot import it: it refuses these ways and answers the others.
        from benchmarks.at_hand import AtHand

        return AtHand(self._data, engine=self._engine.__name__)

    def _made(self, name: str, embedder: Any, vectors: Any) -> Any:
        """The store of that name, warm; built where it was not built to its end."""
        folder = self._folder / name
        path = folder / "memory.db"
        if not (folder / "built").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            items = list(_items(self._data, vectors))
            began = time.perf_counter()
            with self._engine.Memory(path, embedder=embedder, settings=self._settings()) as memory:
                memory.remember_many(items)
                self._seconds["build_s"] = round(time.perf_counter() - began, 2)
                upkeep = getattr(memory, "store", memory)
                if hasattr(upkeep, "catch_up"):
                    upkeep.catch_up()
            (folder / "built").touch()
        memory = self._engine.Memory(path, embedder=embedder, settings=self._settings())
        self._opened.append(memory)
        getattr(memory, "store", memory).warmup()  # of a commit before `memory.store`, the memory's own
        return memory

    def _arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options as this commit's `recall` takes them: before profiles had them all, by their older names."""
        try:
            request = import_module(f"{self._engine.__name__}.recall.request")
            arguments: dict[str, Any] = request.recall_arguments(options)
        except (ImportError, AttributeError):
            return {
                name: _OLDER.get(value, value) if name == "superseded" else value for name, value in options.items()
            }
        return arguments

    def _settings(self) -> Any:
        settings = self._engine.Settings
        if "query_cache_size" in signature(settings).parameters:  # later commits have a variable in its place
            return settings(query_cache_size=0)
        return settings()


def _items(data: Dataset, vectors: Any) -> Iterator[dict[str, Any]]:
    """The records with the tags that filters keep them by."""
    belongs, step = parts(len(data.lines)).tolist(), _YEARS / len(data.lines)
    for place, item in enumerate(corpus.items(data.lines, vectors)):
        tags = [name for name, below in FILTERS.items() if belongs[place] < below]
        yield {**item, "tags": tags, "created_at": _BEGAN + step * place}


def _fault(call: Callable[..., object], *arguments: Any) -> str | None:
    try:
        call(*arguments)
    except Exception as error:  # Whatever this commit raises for what it does not know.
        return f"{type(error).__name__}: {error}"
    return None


def _read(hits: Any) -> None:
    for hit in hits:
        _ = hit.id, hit.text, hit.score


def _answer(hits: Any) -> dict[str, Any]:
    """Return what must be the same on both sides; a record is named by its place in the data, since ids differ."""
    return {
        "places": [int(hit.source.id.split()[1]) * corpus.SOURCE_LINES + hit.source.position for hit in hits],
        "scores": [hit.score for hit in hits],
        "gaps": list(getattr(hits, "evidence_gaps", ())),
        "reasons": [list(getattr(hit, "match_reasons", ())) for hit in hits],
    }


def _main() -> None:
    # What a library prints goes to stderr: answers alone are on stdout.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    arguments = json.loads(sys.argv[1])
    store = Store(arguments["engine"], Path(arguments["data"]), Path(arguments["store"]))
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(store, command.pop("do"))(**command)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _main()
