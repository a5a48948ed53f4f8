"""Questions with texts that answer them and texts that do not: what the reader is trained on.

SQuAD by sentences (as split by Du et al., and the unanswerable questions of 2.0), the dialogues and facts of the split
"vectors", Synthetic-Persona-Chat, near misses by rules (`neighbours.py`), and stores written by hand, in which every
memory is a near miss of the others (`stores/`). If the answer is what somebody said of themselves, the same question
about another speaker has none.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.training import facts
from benchmarks.training.data import Store, plain, read, stores
from benchmarks.training.facts import by_name
from benchmarks.training.neighbours import Group, names, near_misses
from benchmarks.training.pairs import HELD_EPISODES, asked_of_other, embedded_text

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
_SENTENCES, _QUESTIONS = "xinyadu/nqg", "chrischute/squad"
_WORD = re.compile(r"\w+")
_PERSONA = "google-research-datasets/Synthetic-Persona-Chat"
_WRONG, _NEAR_SENTENCES, _CHARS, _ELSEWHERE = 8, 60, 500, 4
_STORES = Path(__file__).parent / "stores"
Kind = Literal["questions", "contrasts", "requests", "multilingual"]
WRITTEN: tuple[Kind, ...] = ("questions", "contrasts", "requests")
"""Kinds of the stores in English."""
_STORE_LINE = re.compile(
    r"## (?P<subject>.+)|(?P<number>\d+)\. (?P<text>.+)|[?!] (?P<question>.+) = (?P<gold>-|\d+\??(?:, ?\d+\??)*)"
)
_SYMBOLS = (
    ("-lrb- ", "("), (" -rrb-", ")"), ("-lsb- ", "["), (" -rsb-", "]"), ("`` ", '"'), (" ''", '"'), (" -- ", "-"),
)  # fmt: skip


def groups(repositories: Path, embed: Embed) -> Iterator[Group]:
    """Every group; `embed` gives the vectors by which what is close and does not answer is found."""
    yield from _sentences(repositories, embed)
    yield from _paragraphs(repositories, embed)
    for name in ("friendsqa", "molweni", "qmsum"):
        yield from _dialogues(repositories, name, embed)
    yield from _chats(repositories)
    kinds = facts.kinds("vectors")
    apart = kinds[::5]
    yield from _facts(facts.stores("vectors", 900, only=[kind for kind in kinds if kind not in apart]), apart=False)
    yield from _facts(facts.stores("vectors", 60, seed=1, only=apart), apart=True)
    yield from near_misses()
    for kind in WRITTEN:
        yield from _stores(embed, kind)


def _closest(vector: NDArray[np.float32], vectors: NDArray[np.float32]) -> list[int]:
    order: list[int] = np.argsort(-(vectors @ vector)).tolist()
    return order


def _sentences(repositories: Path, embed: Embed) -> Iterator[Group]:
    """SQuAD 1.1: the sentence that answers, and the most similar ones of its article."""
    for part in ("dev", "test"):
        texts, questions = (
            [
                _written(line)
                for line in read(repositories, _SENTENCES, f"data/processed/{side}-{part}.txt").splitlines()
            ]
            for side in ("src", "tgt")
        )
        distinct = list(dict.fromkeys(texts))
        place_of = {text: place for place, text in enumerate(distinct)}
        vectors, wanted = embed([text[:_CHARS] for text in distinct]), embed(questions)
        for number, (text, question) in enumerate(zip(texts, questions, strict=True)):
            place = place_of[text]
            first = max(0, place - _NEAR_SENTENCES)
            near = [first + at for at in _closest(wanted[number], vectors[first : place + _NEAR_SENTENCES + 1])]
            wrong = [distinct[at] for at in near if at != place][:_WRONG]
            yield Group(question, [text], wrong, "squad", number > 0.93 * len(texts))


def _written(tokenised: str) -> str:
    for symbol, character in _SYMBOLS:
        tokenised = tokenised.replace(symbol, character)
    return plain(tokenised)


def _paragraphs(repositories: Path, embed: Embed) -> Iterator[Group]:
    """SQuAD 2.0: the sentences of a paragraph, none of which answers half of the questions."""
    articles = json.loads(read(repositories, _QUESTIONS, "data/dev-v2.0.json"))["data"]
    for number, article in enumerate(articles):
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            ends = [match.end() for match in re.finditer(r"(?<=[.!?])\s+(?=[A-Z\"(])", text)] + [len(text)]
            spans = list(zip([0, *ends[:-1]], ends, strict=True))
            sentences = [text[begin:end].strip() for begin, end in spans]
            vectors, wanted = (
                embed([one[:_CHARS] for one in sentences]),
                embed([one["question"] for one in paragraph["qas"]]),
            )
            for entry, vector in zip(paragraph["qas"], wanted, strict=True):
                begin = -1 if entry["is_impossible"] else entry["answers"][0]["answer_start"]
                right = [one for one, (first, end) in zip(sentences, spans, strict=True) if first <= begin < end]
                wrong = [sentences[at] for at in _closest(vector, vectors) if sentences[at] not in right][:_WRONG]
                yield Group(entry["question"], right, wrong, "squad2", number >= len(articles) - 2)


def _dialogues(repositories: Path, name: str, embed: Embed) -> Iterator[Group]:
    """The turns that answer, those before and after, the most similar others, and questions about the wrong speaker."""
    for number, store in enumerate(stores(repositories, "vectors", (name,)), 1):
        chance = random.Random(store.name)
        apart = store.name.removeprefix("friendsqa/") in HELD_EPISODES if name == "friendsqa" else number % 8 == 0
        texts = [embedded_text(turn) for turn in store.turns]
        questions = [question for question in store.questions if question.gold]
        if not questions:
            continue
        vectors, wanted = embed([text[:_CHARS] for text in texts]), embed([question.text for question in questions])
        for question, vector in zip(questions, wanted, strict=True):
            order = _closest(vector, vectors)
            gold = [at for at in order if at in question.gold][: 2 if name == "qmsum" else 3]
            near = [at for at in (gold[0] - 1, gold[0] + 1) if 0 <= at < len(texts) and at not in question.gold]
            wrong = [texts[at] for at in (*near, *[at for at in order if at not in question.gold][:_WRONG])]
            yield Group(question.text, [texts[at] for at in gold], wrong[:9], name, apart)
            if name == "friendsqa" and (other := _of_another(question.text, store, gold[0], chance)):
                yield Group(other, [], [texts[at] for at in gold] + wrong[2:6], "friendsqa_swapped", apart)


def _of_another(question: str, store: Store, place: int, chance: random.Random) -> str | None:
    """The question with the first name of another speaker in the place of the one who answers it."""
    speaker = (store.turns[place]["context"] or "").split(" ")[0]
    if speaker not in _WORD.findall(question):
        return None
    first_names = sorted({(turn["context"] or "-").split(" ")[0] for turn in store.turns} - {speaker})
    others = [name for name in first_names if name[:1].isupper() and name not in question]
    if not others:
        return None
    other = chance.choice(others)
    return _WORD.sub(lambda word: other if word[0] == speaker else word[0], question)


def _chats(repositories: Path) -> Iterator[Group]:
    """Synthetic-Persona-Chat: what one asks is answered by the other's next turn, and not by what else was said."""
    for part in ("valid", "test"):
        table = read(repositories, _PERSONA, f"data/Synthetic-Persona-Chat_{part}.csv")
        for number, row in enumerate(csv.DictReader(io.StringIO(table))):
            yield from _chat(row["Best Generated Conversation"], random.Random(f"{part} {number}"), number % 20 == 7)


def _chat(conversation: str, chance: random.Random, apart: bool) -> Iterator[Group]:
    users = ("User 1", "User 2")
    people = dict(zip(users, chance.sample(names(), 2), strict=True))
    with_assistant = chance.random() < 0.2
    speakers = {"User 1": "user", "User 2": "assistant"} if with_assistant else people
    lines = [(user, text) for user, _, text in (line.partition(": ") for line in conversation.split("\n"))]
    lines = [(user, text) for user, text in lines if user in users and text]
    texts = [f"{speakers[user]}: {text}" for user, text in lines]
    for place in range(1, len(lines)):
        (other, before), (user, text) = lines[place - 1], lines[place]
        question = asked_of_other(before)
        if other == user or question is None or len(text.split()) <= 3 or (with_assistant and user != "User 1"):
            continue
        named = not with_assistant and chance.random() < 0.8
        drawn = [at for at in chance.sample(range(len(texts)), min(7, len(texts))) if at not in (place, place - 1)]
        wrong = [texts[place - 1], *(texts[at] for at in drawn)]
        yield Group(by_name(question, people[user]) if named else question, [texts[place]], wrong, "persona", apart)
        if named and chance.random() < 0.6:
            swapped = by_name(question, people[other])
            yield Group(swapped, [], [texts[place], *wrong[:4]], "persona_swapped", apart)


def _facts(made: Iterator[Store], *, apart: bool) -> Iterator[Group]:
    """The turn of a fact, those around it, and others of its store."""
    for store in made:
        chance = random.Random(store.name)
        texts = [embedded_text(turn) for turn in store.turns]
        for question in store.questions:
            rest = [at for at in range(len(texts)) if at not in question.gold]
            near = [at + step for at in question.gold for step in (-1, 1) if at + step in rest]
            wrong = dict.fromkeys(texts[at] for at in (*near, *chance.sample(rest, min(_WRONG, len(rest)))))
            yield Group(question.text, [texts[at] for at in question.gold], list(wrong)[:9], "facts", apart)


class WrittenStore(NamedTuple):
    """Memories by number on one subject, and questions with the numbers of the memories that answer each alone.

    A request has the numbers of those that it needs, and in `concerning` those that neither help nor harm.
    """

    language: str
    subject: str
    memories: dict[int, str]
    questions: list[tuple[str, list[int]]]
    concerning: dict[str, list[int]]


def written_stores(apart: bool = False, kind: Kind = "questions") -> list[WrittenStore]:
    """The stores of a kind, or those of its folder `held`, which train nothing.

    `requests` are prompts with the memories that they need, `contrasts` have questions of which two thirds ask for
    what was never told of what was, and `multilingual` are questions in other languages than English.

    Raises:
        ValueError: A line is no subject, memory or question.
    """
    folder = _STORES if kind == "questions" else _STORES / kind
    paths = sorted((folder / "held" if apart else folder).glob("*.txt"))
    return [store for path in paths for store in stores_of(path, path.stem if kind == "multilingual" else "en")]


def stores_of(path: Path, language: str = "en") -> list[WrittenStore]:
    """The stores of a file. Raises ValueError for a line that is no subject, memory or question."""
    made: list[WrittenStore] = []
    for line in filter(None, path.read_text("utf-8").splitlines()):
        match = _STORE_LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{path.name} has a line that is no subject, memory or question: {line!r}")
        if subject := match["subject"]:
            made.append(WrittenStore(language, subject, {}, [], {}))
        elif text := match["text"]:
            made[-1].memories[int(match["number"])] = text
        else:
            named = [] if match["gold"] == "-" else re.split(", ?", match["gold"])
            made[-1].questions.append((match["question"], [int(one) for one in named if one[-1] != "?"]))
            if concerning := [int(one[:-1]) for one in named if one[-1] == "?"]:
                made[-1].concerning[match["question"]] = concerning
    return made


def _stores(embed: Embed, kind: Kind) -> Iterator[Group]:
    """Stores written by hand: the memories that answer, and all others of the store, the most similar first.

    To a request some of other stores are added: of its own store most are of its subject.
    """
    chance = random.Random(0)
    stores = written_stores(kind=kind)
    everywhere = [text for store in stores for text in store.memories.values()]
    for store in stores:
        order = list(store.memories)
        vectors = embed(list(store.memories.values()))
        wanted = embed([question for question, _ in store.questions])
        for (question, gold), vector in zip(store.questions, wanted, strict=True):
            apart = {*gold, *store.concerning.get(question, ())}
            near = [order[at] for at in _closest(vector, vectors)]
            wrong = [store.memories[at] for at in near if at not in apart]
            if kind == "requests":
                wrong += chance.sample(everywhere, _ELSEWHERE)
            answers = [store.memories[at] for at in gold]
            yield Group(question, answers, wrong, "stores" if kind == "questions" else kind, apart=False)
