"""Objects with the protocol, documents of a plain embedder, names, the query cache."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallite.embedding import embed_documents, load
from recallite.embedding.handle import QueryCache
from recallite.embedding.protocol import embed_checked, header, split, starts
from recallite.errors import EmbedderError, InvalidInput


class Hashing:
    """An embedder as a user would write one."""

    name = "hashing"
    dimension = 4
    fingerprint = "hashing-1"
    max_tokens = 16

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        rows = [np.frombuffer(hashlib.sha256(text.encode()).digest()[:4], np.uint8) + 1.0 for text in texts]
        return (np.stack(rows) / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_an_object_with_the_protocol_is_returned() -> None:
    mine = Hashing()
    assert load(mine) is mine


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 0}, "positive int"),
        ({"dimension": "4"}, "positive int"),
        ({"dimension": True}, "positive int"),
        ({"name": ""}, "has the name"),
        ({"fingerprint": None}, "has the fingerprint"),
        ({"embed": None}, "no method embed"),
    ],
)
def test_an_object_that_lacks_something_is_refused(change: dict[str, object], message: str) -> None:
    mine = Hashing()
    vars(mine).update(change)
    with pytest.raises(InvalidInput, match=message):
        load(mine)


@pytest.mark.parametrize("what", [3, object(), Hashing])
def test_what_is_no_embedder_is_refused(what: object) -> None:
    with pytest.raises(InvalidInput, match="no method embed"):
        load(what)


def test_an_unknown_name_lists_the_choices() -> None:
    with pytest.raises(
        InvalidInput,
        match=r"use one of default, none, all-MiniLM-L6-v2, instant, multilingual, recallite-minilm; the.*voyage",
    ):
        load("gpt-embedding")


def test_names_of_the_bundled_model_are_one() -> None:
    assert len({load(name).fingerprint for name in (None, "default", "Recallite-MiniLM")}) == 1


def test_documents_of_a_plain_embedder_are_split_by_characters() -> None:
    mine = Hashing()
    told: list[tuple[int, int]] = []
    long = " ".join(f"word{i}" for i in range(60))
    embedded = embed_documents(mine, ["short", long, "end"], ["Ann", "Bob", None], lambda *at: told.append(at))
    assert embedded.vectors.shape == (len(mine.seen), 4)
    assert embedded.owners.tolist() == [0, *[1] * (len(mine.seen) - 2), 2]
    assert (mine.seen[0], mine.seen[-1]) == ("Ann: short", "end")
    assert all(part.startswith("Bob: ") and len(part) <= 64 for part in mine.seen[1:-1])
    assert set(" ".join(part[5:] for part in mine.seen[1:-1]).split()) == set(long.split())
    assert told[-1] == (len(mine.seen), len(mine.seen))


def test_no_documents() -> None:
    embedded = embed_documents(Hashing(), [], [])
    assert (embedded.vectors.shape, embedded.owners.shape) == ((0, 4), (0,))


def test_header_joins_in_one_place() -> None:
    assert [header(context) for context in (None, "", "  ", " Ann ")] == ["", "", "", "Ann: "]


@given(st.integers(0, 3000), st.integers(4, 300), st.data())
def test_starts_cover_with_overlap(length: int, body: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, body // 2))
    begins = starts(length, body, overlap)
    assert begins[0] == 0
    if length > body:
        assert begins[-1] == length - body
        assert all(0 < later - earlier <= body - overlap for earlier, later in itertools.pairwise(begins))


@given(st.lists(st.sampled_from(["word", " ", "\n"]), max_size=400), st.integers(8, 60))
def test_split_covers_every_word(pattern: list[str], size: int) -> None:
    # No character but whitespace comes twice, so that a part has one place in the text.
    text = "".join(chr(0x4E00 + i) if kind == "word" else kind for i, kind in enumerate(pattern))
    parts = split(text, size, size // 4)
    assert all(len(part) <= size for part in parts)
    assert set("".join(parts)) >= set("".join(text.split()))
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    if " " not in text and "\n" not in text:
        assert all(later <= earlier + size - size // 4 for earlier, later in itertools.pairwise(places))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.ones((1, 3)), "shape"),
        (np.zeros((1, 4)), "zero, NaN or infinite"),
        (np.full((1, 4), np.nan), "zero, NaN or infinite"),
    ],
)
def test_what_an_embedder_returns_is_checked(returned: Any, message: str) -> None:
    mine = Hashing()
    mine.embed = lambda texts: returned  # type: ignore[method-assign]
    with pytest.raises(EmbedderError, match=message):
        embed_checked(mine, ["a"])
    with pytest.raises(EmbedderError, match=message):
        embed_documents(mine, ["a"], [None])


def test_an_embedders_own_exception_becomes_an_embedder_error() -> None:
    mine = Hashing()

    def fail(texts: Sequence[str]) -> Any:
        raise ConnectionError("model server is gone")

    mine.embed = fail  # type: ignore[method-assign]
    with pytest.raises(EmbedderError, match="hashing failed: ConnectionError: model server is gone"):
        embed_checked(mine, ["a"])


def test_the_query_cache_is_bounded_and_forgets_the_oldest() -> None:
    mine = Hashing()
    cache = QueryCache(mine, size=2)
    first = cache.embed_many(["a"])[0].vector
    assert cache.embed_many(["a"])[0].vector is first
    assert not first.flags.writeable
    cache.embed_many(["b"])
    cache.embed_many(["a"])
    cache.embed_many(["c"])
    assert len(cache._cached) == 2
    cache.embed_many(["a"])
    assert mine.seen == ["a", "b", "c"]
    cache.embed_many(["b"])
    assert mine.seen == ["a", "b", "c", "b"]


@pytest.mark.parametrize("size", [0, 1, 3])
def test_the_query_cache_embeds_each_unknown_query_once(size: int) -> None:
    mine = Hashing()
    cache = QueryCache(mine, size=size)
    queries = ["a", "b", "a", "c", "d"]
    rows = cache.embed_many(queries)
    np.testing.assert_array_equal(np.stack([each.vector for each in rows]), Hashing().embed(queries))
    assert mine.seen == ["a", "b", "c", "d"]
    assert len(cache._cached) == size
