"""Examples for training vectors: what answers, what is close and does not, and what counts as no negative."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.training import facts, pairs
from benchmarks.training.data import Question, Store


def words(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of the words of texts: alike texts are near one another."""
    vectors = np.zeros((len(texts), 256), np.float32)
    for row, text in enumerate(texts):
        for word in text.lower().split():
            vectors[row, zlib.crc32(word.encode()) % 256] += 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_text_has_its_speaker_before_it_as_the_engine_embeds_it() -> None:
    assert pairs.embedded_text({"text": "It rains.", "context": "Ada"}) == "Ada: It rains."
    assert pairs.embedded_text({"text": "It rains.", "context": None}) == "It rains."


def test_an_example_names_its_answer_and_what_is_close_in_the_store() -> None:
    turns = [
        {"text": "the blue house is mine", "context": None},
        {"text": "the blue car is hers", "context": None},
        {"text": "nothing of the kind", "context": None},
        {"text": "the blue house is mine", "context": None},
    ]
    asked = [Question("which blue house is it", (0,)), Question("who knows", (), answerable=False)]
    made = pairs.pairs([Store("friendsqa/e", turns, asked)], words)
    [example] = made.examples
    assert [made.texts[place] for place in example.answers] == ["the blue house is mine"]
    assert [made.texts[place] for place in example.hard] == ["the blue car is hers", "nothing of the kind"]


def test_examples_of_a_group_come_from_one_store() -> None:
    stores = list(facts.stores("vectors", 4))
    made = pairs.pairs(stores, words)
    texts = [{pairs.embedded_text(turn) for turn in store.turns} for store in stores]
    groups: dict[int, list[pairs.Example]] = {}
    for example in made.examples:
        assert example.closed
        groups.setdefault(example.group, []).append(example)
    for examples in groups.values():
        used = {made.texts[place] for example in examples for place in (*example.answers, *example.hard)}
        assert len(examples) <= 8
        assert any(used <= said for said in texts)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Hi! What do you do for a living?", "What do I do for a living?"),
        ("Where are you from originally?", "Where am I from originally?"),
        ("Nice. Do you have any pets at home?", "Do I have any pets at home?"),
        ("Who is your favorite author these days?", "Who is my favorite author these days?"),
        ("How are you doing today then?", None),
        ("What do you think about that?", None),
        ("I live in a small town.", None),
        ("Is there anything else to see?", None),
    ],
)
def test_a_question_to_the_other_becomes_the_others_own(said: str, asked: str | None) -> None:
    assert pairs.asked_of_other(said) == asked


def test_what_may_answer_a_question_too_is_no_negative() -> None:
    pytest.importorskip("onnx")
    from benchmarks.training.vectors import hidden as barred

    mine = pairs.Example("Where do I live?", (0, 4), (1,), group=0, closed=True)
    other = pairs.Example("Where do I live?", (2,), (3,), group=1, closed=True)
    named = pairs.Example("Where does Ada live?", (5,), (6,), group=2, closed=False)
    alike = np.eye(3, dtype=np.float32)
    found = barred([mine, other, named], [0, 2, 5, 1, 3, 4], alike, 0.75)
    assert found.tolist() == [
        [False, True, False, False, True, True],
        [True, False, False, True, False, False],
        [False, False, False, False, False, False],
    ]
    alike[0, 2] = alike[2, 0] = 0.9
    assert barred([mine, other, named], [0, 2, 5, 1, 3, 4], alike, 0.75)[2].tolist()[:2] == [True, False]
    assert not barred([replace(mine, closed=False)], [0, 1], alike[:1], 0.75).any()


@pytest.mark.slow
def test_training_changes_the_upper_layers_alone_and_lowers_the_loss(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    load_file = pytest.importorskip("safetensors.numpy").load_file
    from benchmarks.training.minilm import Encoder
    from benchmarks.training.vectors import Recipe, save, train

    folder = os.environ.get("RECALLITE_TEST_WEIGHTS")
    if folder is None:
        pytest.skip("set RECALLITE_TEST_WEIGHTS to a folder with model.safetensors and tokenizer.json")
    torch.set_num_threads(1)
    encoder = Encoder(Path(folder), 4)
    before = {name: values.clone() for name, values in encoder.weights.items()}
    made = pairs.pairs(list(facts.stores("vectors", 12)), encoder.embed)
    losses: list[float] = []
    recipe = Recipe(epochs=3, together=4)
    trained = train(
        encoder, made, made.texts[:20], recipe, lambda _epoch, _encoder, lost: losses.append(lost["sentence"])
    )
    assert losses[2] < losses[0]
    assert all(name.startswith(("encoder.layer.4.", "encoder.layer.5.")) for name in trained)
    for name, values in encoder.weights.items():
        assert torch.equal(values, before[name]) == (name not in trained), name
    save(trained, tmp_path / "trained.safetensors")
    assert {str(values.dtype) for values in load_file(tmp_path / "trained.safetensors").values()} == {"float16"}
