"""Trains the weights that tell standing instructions and preferences from other sentences.

    python -m benchmarks.training.standing --repositories DIR              # writes recallite/text/standing.npz
    python -m benchmarks.training.standing --repositories DIR --folds 4    # each pattern judged by weights without it

The sentences are made of the patterns in `standing/`, a file for each language, which were written for this and have no
sentence of a test or of another set (Apache-2.0, ours). `[class]` begins the patterns of a class, `{a|b}` is one of
several, `@name: a|b` gives what `{name}` stands for, and what is in "@lead" may stand before any sentence. Beside these
stand the rules that people gave their coding agents, as items that begin like one.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.training import data
from benchmarks.training.data import used_by
from benchmarks.training.readings import written_stores
from recallite.text.standing import CLASSES, LONGEST, PATH, SHORTEST, characters_of, sentences_of, sizes_of
from recallite_kernels.words import FACTOR, FIRST

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER = Path(__file__).with_name("standing")

_BITS = 16
_SENTENCES_PER_PATTERN = 24
_EPOCHS, _BATCH, _RATE, _DECAY = 14, 256, 0.5, 1e-6
_FOUND, _FOUND_WEIGHT = 30_000, 0.05
# Those of the other sentences that the first weights find standing are trained with, but for what probably is.
_HARD, _MOST_CHANCE, _HARD_WEIGHT = 0.2, 0.9, 0.3
# Of oos-eval: they ask for what lasts.
_LASTING_INTENTS = frozenset(("change_user_name", "change_language", "change_accent", "change_ai_name", "change_speed"))
_TEXT = re.compile("^# text = (.*)$", re.MULTILINE)
_FENCED = re.compile(r"\A---\n.*?\n---\n|```.*?(?:```|\Z)", re.DOTALL)
_PROSE = re.compile(r"[A-Z][a-z ]")
_RULES, _RULE_WEIGHT = "PatrickJS/awesome-cursorrules", 0.3
_RULE = re.compile(
    r"^\s*(?:[-*•]|\d{1,2}\.)\s+((?:never|always|avoid|do not|don't|prefer|no|only|must|keep|ensure|make sure|use"
    r"|follow|write|favou?r|limit|treat|minimi[sz]e|include|add|place|put|name|document|validate|handle|test|run|ask)\b"
    r".{4,150}[^:\s])\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_BEFORE_MARK = re.compile(r" ([.,;:!?']|n't\b)")
_ROUNDS = 2
_SLOT = re.compile(r"\{([^{}]*)\}")
_MOST_OF_A_LIST = 4  # how often a list counts among alternatives


class Sentence(NamedTuple):
    """A sentence, its class, what made it, and how much it counts.

    One that nobody wrote for this has the class None: it is other or a task, and says nothing of which.
    """

    text: str
    kind: int | None
    pattern: tuple[str, int]
    weight: float


def read(path: Path) -> tuple[dict[str, list[str]], list[tuple[int, str]]]:
    """The lists of a file by name, and its patterns with their class."""
    lists: dict[str, list[str]] = {}
    patterns: list[tuple[int, str]] = []
    kind = 0
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line[0] == "@":
            name, _, values = line[1:].partition(":")
            lists[name] = [value.strip() for value in values.split("|")]
        elif line[0] == "[":
            kind = CLASSES.index(line[1:-1])
        else:
            patterns.append((kind, line))
    return lists, patterns


def made_of(path: Path, seed: int = 1) -> list[Sentence]:
    """The sentences of a language: some of each pattern, without the full stop, with a lead or without accents too."""
    lists, patterns = read(path)
    chosen = random.Random(f"{path.stem} {seed}")
    made = []
    for number, (kind, pattern) in enumerate(patterns):
        found = dict.fromkeys(_made(pattern, lists, chosen) for _ in range(3 * _SENTENCES_PER_PATTERN))
        some = [*found][:_SENTENCES_PER_PATTERN]
        made += [
            Sentence(_varied(text, lists["lead"], chosen), kind, (path.stem, number), len(some) ** -0.5)
            for text in some
        ]
    return made


def _made(pattern: str, lists: dict[str, list[str]], chosen: random.Random) -> str:
    while slot := _SLOT.search(pattern):
        options = slot[1].split("|")
        if len(options) == 1:
            options = lists.get(options[0], options)
        else:
            several = [
                chosen.choices(lists[option], k=_MOST_OF_A_LIST) if option in lists else [option] for option in options
            ]
            options = [option for some in several for option in some]
        pattern = pattern[: slot.start()] + chosen.choice(options) + pattern[slot.end() :]
    return " ".join(pattern.split())


def _varied(text: str, leads: Sequence[str], chosen: random.Random) -> str:
    if chosen.random() < 0.25:
        text = text.rstrip(".!。")
    if chosen.random() < 0.12:
        lead = chosen.choice(leads)
        text = f"{lead}{'' if lead[-1] in '，、。' else chosen.choice((' ', ', ', ', ', ': '))}{text}"
    if chosen.random() < 0.08 and text[0] < "\u0250":
        text = "".join(char for char in unicodedata.normalize("NFD", text) if not unicodedata.combining(char))
    return text


def ruled(repositories: Path) -> list[Sentence]:
    """The rules that people gave their coding agents."""
    pinned = data.paths(_RULES)
    texts = (_FENCED.sub("", data.read(repositories, _RULES, path)).replace("**", "") for path in pinned)
    rules = dict.fromkeys(chain.from_iterable(map(_RULE.findall, texts)))
    kind = CLASSES.index("instruction")
    firsts = (sentences_of(rule)[0][0] for rule in rules)
    return [Sentence(first, kind, ("rules", place), _RULE_WEIGHT) for place, first in enumerate(firsts)]


def found(repositories: Path) -> list[Sentence]:
    """Sentences of treebanks, of dialogues and of what was written for other trainings; hardly any is standing."""
    texts: dict[str, None] = {}
    for repository, pin in used_by("standing").items():
        for path in pin["files"] if "standing" in pin.get("used_by", ()) and repository != _RULES else ():
            texts |= dict.fromkeys(texts_of(path, data.read(repositories, repository, path)))
    for store in written_stores():
        texts |= dict.fromkeys([*store.memories.values(), *(question for question, _ in store.questions)])
    for path in sorted(FOLDER.with_name("changes").glob("*.jsonl")):
        pairs = map(json.loads, path.read_text("utf-8").splitlines())
        texts |= dict.fromkeys(chain.from_iterable((pair["old"], pair["new"]) for pair in pairs))
    sentences = dict.fromkeys(chain.from_iterable(sentences_of(text)[0] for text in texts))
    chosen = random.Random(1)
    return [Sentence(_begin(text, chosen), None, ("found", place), 0.0) for place, text in enumerate(sentences)]


def texts_of(path: str, content: str) -> Iterable[str]:
    """The texts of a file: a treebank, dialogues, requests by intent, or tasks."""
    if path.endswith(".conllu"):
        return _TEXT.findall(content)
    if path.endswith(".md"):
        return [part for part in _FENCED.sub("", content).split("\n\n") if _PROSE.match(part)]
    if path.endswith(".txt"):
        return [_BEFORE_MARK.sub(r"\1", line) for line in content.splitlines()]
    if path.endswith(".jsonl"):
        return [json.loads(line)["instruction"] for line in content.splitlines()]
    read = json.loads(content)
    if isinstance(read, dict):
        return [text for part in read.values() for text, intent in part if intent not in _LASTING_INTENTS]
    return chain.from_iterable(chain(*one["dialogue"], one["persona"]) for one in read)


def _begin(text: str, chosen: random.Random) -> str:
    """The text, or in one of six times its first words."""
    words = text.split()
    return " ".join(words[: chosen.randint(1, 4)]) if chosen.random() < 1 / 6 else text


class Rows(NamedTuple):
    """What sentences have: rows of weights, int64 (m,), how often, float64 (m,), and int64 (n + 1,) offsets."""

    slots: NDArray[np.int64]
    values: NDArray[np.float64]
    offsets: NDArray[np.int64]

    def of(self, sentences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """The slots and values of some sentences, and the place of the sentence of each."""
        lengths = np.diff(self.offsets)[sentences]
        owners = np.repeat(np.arange(len(sentences)), lengths)
        begins = np.repeat(self.offsets[sentences] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        entries = begins + np.arange(len(owners))
        return self.slots[entries], self.values[entries], owners


def rows_of(texts: Sequence[str]) -> Rows:
    """The n-grams of sentences as `recallite_kernels.sum_ngrams` reads them."""
    characters, offsets = characters_of(
        [sentences_of(f"{text}\u2028")[0][0] if '"' in text else text for text in texts]
    )
    units, ends = characters.astype(np.uint64), np.repeat(offsets[1:], np.diff(offsets))
    owners = np.repeat(np.arange(len(texts)), np.diff(offsets))
    codes = np.full(len(units), FIRST, np.uint64)
    ngrams = []
    for size in range(1, LONGEST + 1):
        codes = (codes[: len(units) - size + 1] ^ units[size - 1 :]) * np.uint64(FACTOR)
        if size >= SHORTEST:
            whole = np.arange(len(codes)) + size <= ends[: len(codes)]
            slots = (codes >> np.uint64(64 - _BITS)).astype(np.int64)
            ngrams.append((owners[: len(codes)] << _BITS | slots)[whole])
    keys, counts = np.unique(np.concatenate(ngrams), return_counts=True)
    of = keys >> _BITS
    values = counts / sizes_of(offsets)[of]
    return Rows(keys & (1 << _BITS) - 1, values, np.searchsorted(of, np.arange(len(texts) + 1)))


def odds_of(rows: Rows, weights: NDArray[np.float64], sentences: NDArray[np.int64]) -> NDArray[np.float64]:
    """The log odds of sentences, but for a constant; the last row of the weights is the bias."""
    slots, values, owners = rows.of(sentences)
    odds = np.stack(
        [np.bincount(owners, values * weights[slots, kind], len(sentences)) for kind in range(weights.shape[1])], axis=1
    )
    biased: NDArray[np.float64] = odds + weights[-1]
    return biased


def train(rows: Rows, kinds: NDArray[np.int64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of a logistic regression: AdaGrad with decay in batches, averaged over the second half."""
    generator, used = np.random.default_rng(1), np.flatnonzero(counts)
    shape = (1 << _BITS) + 1, len(CLASSES)
    weights, squares, mean = np.zeros(shape), np.full(shape, 1e-4), np.zeros(shape)
    # Of a sentence that was found the two classes that it may have share the truth as they share the chance.
    allowed = np.where(kinds[:, None] < 0, np.arange(len(CLASSES)) < 2, np.eye(len(CLASSES))[kinds])
    averaged = 0
    for epoch in range(_EPOCHS):
        order = generator.permutation(used)
        for begin in range(0, len(order), _BATCH):
            some = order[begin : begin + _BATCH]
            odds = odds_of(rows, weights, some)
            chances = np.exp(odds - odds.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            truth = chances * allowed[some]
            truth /= truth.sum(axis=1, keepdims=True)
            errors = (chances - truth) * counts[some, None] / counts[some].sum()
            slots, values, owners = rows.of(some)
            gradient: NDArray[np.float64] = np.stack(
                [np.bincount(slots, values * errors[owners, kind], shape[0]) for kind in range(shape[1])], axis=1
            )
            gradient = gradient + _DECAY * weights
            gradient[-1] = errors.sum(axis=0)
            squares = squares + gradient**2
            weights = weights - _RATE * gradient / np.sqrt(squares)
        if epoch >= _EPOCHS // 2:
            mean = mean + weights
            averaged += 1
    return mean / averaged


def _kind(sentence: Sentence) -> int:
    return -1 if sentence.kind is None else sentence.kind


def weighed(sentences: Sequence[Sentence], rows: Rows, kinds: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much each sentence counts: of those that were found some, and those that weights take for standing."""
    counts = np.array([one.weight for one in sentences])
    others = np.flatnonzero(kinds < 0)
    counts[np.random.default_rng(1).permutation(others)[:_FOUND]] = _FOUND_WEIGHT
    for _ in range(_ROUNDS):
        odds = np.exp(odds_of(rows, train(rows, kinds, counts), others))
        chances = odds[:, 2:].sum(axis=1) / odds.sum(axis=1)
        counts[others[(chances >= _HARD) & (chances < _MOST_CHANCE)]] = _HARD_WEIGHT
        print(f"{(chances >= _HARD).sum()} of {len(others)} hard, {(chances >= _MOST_CHANCE).sum()} left out")
    return counts


def write(weights: NDArray[np.float64], path: Path) -> None:
    """Write the weights as int8, with a scale for each class."""
    scales = np.abs(weights[:-1]).max(axis=0) / 127
    np.savez_compressed(path, weights=np.rint(weights[:-1] / scales).astype(np.int8), scales=scales, biases=weights[-1])


def main() -> None:
    """Train on all sentences, or judge each by weights that have not seen its pattern."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repositories", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, default=PATH, metavar="FILE")
    parser.add_argument("--folds", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    folds = arguments.folds
    sentences = [one for path in sorted(FOLDER.glob("*.txt")) for one in made_of(path)]
    sentences += ruled(arguments.repositories) + found(arguments.repositories)
    rows, kinds = rows_of([one.text for one in sentences]), np.array([_kind(one) for one in sentences])
    if not folds:
        weights = train(rows, kinds, weighed(sentences, rows, kinds))
        write(weights, arguments.out)
        print(f"{len(sentences)} sentences, {arguments.out.stat().st_size} bytes: {arguments.out}")
        return
    counts, every = weighed(sentences, rows, kinds), np.arange(len(sentences))
    patterns = sorted({one.pattern for one in sentences})
    random.Random(1).shuffle(patterns)
    fold_of = {pattern: place % folds for place, pattern in enumerate(patterns)}
    fold = np.array([fold_of[one.pattern] for one in sentences])
    odds = np.zeros((len(sentences), len(CLASSES)))
    for held in range(folds):
        inside = np.flatnonzero(fold != held)
        slots, values, owners = rows.of(inside)
        part = Rows(slots, values, np.searchsorted(owners, np.arange(len(inside) + 1)))
        odds[fold == held] = odds_of(rows, train(part, kinds[inside], counts[inside]), every[fold == held])
    margin = odds[:, 2:].max(axis=1) - odds[:, :2].max(axis=1)
    for language in sorted({one.pattern[0] for one in sentences}):
        own = np.array([one.pattern[0] == language for one in sentences])
        line = [language, f"{int(own.sum())} sentences"]
        for least in (0.0, 1.0, 2.0, 3.0):
            taken, wanted = counts * (own & (margin >= least)), kinds >= 2
            line.append(
                f"from {least:.0f}: precision {taken[wanted].sum() / taken.sum():.3f}"
                f" recall {taken[wanted].sum() / counts[own & wanted].sum():.3f}"
            )
        print(*line, sep=", ")


if __name__ == "__main__":
    main()
