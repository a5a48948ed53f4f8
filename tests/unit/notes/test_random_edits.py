"""Two hundred random edits while others search: the index equals one that is built from nothing."""

from __future__ import annotations

import os
import random
import threading

import pytest

from recallite import Workspace
from tests.unit.core.memory.support import WordEmbedder
from tests.unit.notes.support import config, dump, dump_afresh, write

WORDS = ("river", "stone", "cloud", "bread", "winter", "letter", "garden", "engine", "silver", "記憶", "流れる", "café")


def text(seeded):
    parts = [f"---\ntitle: A title\nn: {seeded.randrange(9)}\n---\n"] if seeded.random() < 0.2 else []
    for _ in range(seeded.randrange(1, 5)):
        if seeded.random() < 0.6:
            parts.append(f"{'#' * seeded.randrange(1, 4)} {seeded.choice(WORDS)}\n")
        parts.append(" ".join(seeded.choices(WORDS, k=seeded.randrange(1, 90))) + "\n")
    return "\n".join(parts)


def edit(folder, seeded):
    """One change that a person, an editor or git could make."""
    files = sorted(folder.rglob("*.md"))
    name = f"{seeded.choice(['', 'memory/', 'memory/a/', 'docs/'])}{seeded.choice(WORDS)}{seeded.randrange(4)}.md"
    kind = seeded.choice(("write", "write", "edit", "edit", "delete", "rename", "truncate", "swap", "replace", "back"))
    if kind == "write" or not files:
        write(folder, name, text(seeded))
        return
    file = seeded.choice(files)
    said = file.read_bytes()
    match kind:
        case "edit":
            place = seeded.randrange(len(said) + 1)
            file.write_bytes(said[:place] + b" and more " + said[place:])
        case "delete":
            file.unlink()
        case "rename":
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)
        case "truncate":
            os.truncate(file, seeded.randrange(len(said) + 1))
        case "swap":
            other = seeded.choice(files)
            if other != file:
                file.rename(folder / "swap")
                other.rename(file)
                (folder / "swap").rename(other)
        case "replace":  # as editors save: another file under the same name
            draft = file.with_name("draft")
            draft.write_text(text(seeded))
            draft.replace(file)
        case "back":  # the same size, at the same time
            held = file.stat()
            file.write_bytes(bytes(reversed(said)) if said.isascii() else said)
            os.utime(file, ns=(held.st_atime_ns, held.st_mtime_ns))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_index_equals_one_built_afresh(tmp_path, seed):
    seeded = random.Random(seed)
    folder = tmp_path / "notes"
    embedder = WordEmbedder()
    stop, failed = threading.Event(), []

    def search(workspace):
        try:
            while not stop.is_set():
                workspace.search("river stone", min_score=0.0)
        except BaseException as fault:
            failed.append(fault)

    small = {"chunking": {"tokens": 40, "overlap": 5}, "sync": {"on_search": True}}
    with Workspace(folder, config(**small), embedder=embedder) as workspace:
        searching = threading.Thread(target=search, args=(workspace,))
        searching.start()
        try:
            for step in range(200):
                edit(folder, seeded)
                if step % 5 == 0:
                    workspace.index()
                if step % 50 == 49:
                    workspace.index()
                    assert dump(workspace) == dump_afresh(folder, tmp_path, WordEmbedder(), **small)
        finally:
            stop.set()
            searching.join()
        assert failed == []
