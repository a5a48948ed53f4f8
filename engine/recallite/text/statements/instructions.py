"""Instructions: what is to be done from now on, and which of two that govern the same thing holds. Rules for English.

An instruction has an action ("answer"), what it governs ("dates"), a value in each role ("as ISO", "in German") and the
case that it is for ("before committing", "for this project"). A later one replaces an earlier one only if it plainly
takes its place: it says the reverse of the very same, gives it another name, number or language, or names what it
replaces. If it may or may not, the two contradict each other, and both are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import combinations
from typing import Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from recallite.text.patterns import lazily, read_tables, word_set
from recallite.text.standing import MOST_CHARS, standing_of_texts, whose
from recallite.text.statements import lexicon as lx
from recallite.text.statements.statement import Verdict, statement_of
from recallite.text.statements.statement_words import Word, read_words
from recallite.text.words import STOP_WORDS, stem_of

_TABLES = read_tables(__file__)
# What is done in one way or another.
VERBS = word_set(_TABLES["done"])
LANGUAGES = word_set(_TABLES["languages"])
# What tells that an instruction lasts, beside those which `standing_of` finds.
_LASTING = lazily(
    r"\b(?:always|never|no longer|any ?more|from (?:now|today|here) on|going forward|in (?:the )?future|henceforth"
    r"|whenever|(?:every|each|any) time|instead of)\b"
    r"|(?:\A|[.!?;,:\n]\s{0,3})(?:(?:please|also|and|but|so|just),?\s){0,2}"
    r"(?:don['’]?t|do not|stop \w+ing|avoid|no need|you (?:may|can|(?:do not|don['’]?t|no longer) (?:have|need) to))\b"
)
# Every text that it takes has one of these, and few others have.
_CUES = (
    "always", "never", "no longer", "any more", "anymore", "from now", "here on", "today on", "forward", "future",
    "henceforth", "whenever", "every time", "each time", "any time", "instead of", "don't", "don’t", "dont", "do not",
    "stop ", "avoid", "no need", "you may", "you can",
)  # fmt: skip
_SINCE_NOW = lazily(r"(?i)\bfrom (?:here|today) on(?:wards?)?\b")
_ONCE = frozenset(_TABLES["once"].split())
_ALIKE = {verb: line.split()[0] for line in _TABLES["alike"].splitlines() for verb in line.split()}
_CHOOSING = frozenset(_TABLES["choosing"].split())
_OF_VALUES, _CASES = frozenset(_TABLES["of_values"].split()), frozenset(_TABLES["cases"].split())
_UNSAID = lx.FILLERS | lx.ARTICLES | lx.DEFINITE | lx.NOW | frozenset(_TABLES["unsaid"].split())
_LEADING = _UNSAID | frozenset(_TABLES["leading"].split())
_RELEASES = frozenset(("no_longer", "anymore", "not_anymore"))
_OBLIGES, _ALLOWS = frozenset(("must", "need", "have")), frozenset(("may", "can"))
_TELLING = frozenset(("always", "never", "not", "please", "should", "must", "may", "can", "to", "from_now"))
_GONE = ("instead_of", "rather", "not", "never", "no_longer")
_EXACT = frozenset((lx.NUMBER, lx.CLOCK, lx.DATE, lx.DAY, lx.UNIT))
_MOST_KEYS, _MOST_WORDS = 4, 40
REVERSED, VALUE, REPLACES = "says the reverse", "another value of an instruction", "says what it replaces"
UNSURE = "another instruction about the same thing"
BESIDE = "instructions that may both hold"
REASONS = frozenset((REVERSED, VALUE, REPLACES, UNSURE, BESIDE))
_SURE, _DOUBTFUL = 0.9, 0.7
_BOTH = Verdict("independent", _SURE, BESIDE)


class Instruction(Struct, frozen=True, gc=False):
    """An instruction as read.

    - `action`: its verb, of verbs of one meaning the first; `stance`: 1 to do it, -1 not to, 0 that it need not be or
      may be
    - `roles`: the words of what it governs (""), and of each value by its preposition
    - `case`: the stems of when and for what it holds; empty for always
    - `gone`: the stems of what it says it replaces
    - `alone`: whether the text has nothing else
    """

    action: str
    stance: int
    roles: dict[str, tuple[Word, ...]]
    case: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    alone: bool = True

    def stems(self, role: str) -> frozenset[str]:
        """The stems of a role."""
        return frozenset([word.value + word.unit if word.value else word.stem for word in self.roles.get(role, ())])

    def content(self) -> frozenset[tuple[str, str]]:
        """All that it says of its action, each stem with its role."""
        stems = {(role, stem) for role in self.roles for stem in self.stems(role)}
        return frozenset(stems | {("case", stem) for stem in self.case})

    def marks(self) -> tuple[list[str], list[str]]:
        """Names, as of the newer and as of the older of two: without one in common, `_compared` finds nothing."""
        what, content = self.stems(""), self.content()
        every = sorted(f"{role} {stem}" for role, stem in content)
        same = [f"all {every or self.action}"]
        if what:
            same.append(f"on {sorted(what)}")
        if self.stance == 1:
            do = f"do {self.action} {sorted(self.case)}"
            same.append(f"{do} on {sorted(what)}")
            if self.action in _CHOOSING or any(word.kind in _EXACT for word in self.roles.get("", ())):
                same.append(f"{do} by {[one for one in every if not one.startswith(' ')]}")
        newer = [*(f"gone {stem}" for stem in self.gone), *(f"now {stem}" for stem in what)]
        older = [*(f"gone {stem}" for _, stem in content), *(f"now {stem}" for stem in self.gone)]
        return same + newer, same + older


class _Record(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def scope(self) -> str: ...
    @property
    def context(self) -> str | None: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def pinned(self) -> bool: ...


R = TypeVar("R", bound=_Record)


def in_force(records: Sequence[R]) -> list[tuple[R, tuple[R, ...]]]:
    """The records of instructions that hold, the newest first, each with earlier ones that it may contradict.

    These follow it. One that a later one of its scope plainly replaces is left out, unless it is pinned: a write finds
    most of these, but compares neither several scopes nor turns, and a policy may compare nothing.
    """
    against: dict[int, list[int]] = {}
    replaced = set[int]()
    times = [one.created_at for one in records]
    newest = sorted(range(len(records)), key=times.__getitem__, reverse=True)
    for later, earlier in combinations(newest, 2):
        one, other = records[later], records[earlier]
        speakers = {statement_of(record.text, record.context).speaker for record in (one, other)}
        of_one_person = len(speakers) == 1 and whose(one.metadata) == whose(other.metadata)
        verdict = judge_instructions(one.text, other.text) if of_one_person else None
        if verdict is None or verdict.outcome == "independent":
            continue
        plain = verdict.outcome == "supersedes" and times[later] > times[earlier]
        if plain and one.scope == other.scope and not other.pinned:
            replaced.add(earlier)
        else:
            against.setdefault(later, []).append(earlier)
    order: dict[int, None] = {}
    for i in newest:
        order |= dict.fromkeys([i, *against.get(i, ())])
    return [
        (records[i], tuple([records[other] for other in against.get(i, ()) if other not in replaced]))
        for i in order
        if i not in replaced
    ]


def instruction_keys(text: str) -> tuple[str, ...]:
    """Names by which instructions about the same thing are found: of the action, and of what is governed."""
    names: dict[str, None] = {}
    for instruction in instructions_of(text)[:2]:
        names[f"do {instruction.action}"] = None
        for stem in sorted(instruction.stems("") - {"i"}):
            names[f"on {stem}"] = None
    return tuple(names)[:_MOST_KEYS]


@lru_cache(maxsize=4096)
def instructions_of(text: str) -> tuple[Instruction, ...]:
    """The instructions of a text that last, in order."""
    if len(text) > MOST_CHARS:
        return ()
    lower = text.lower()
    lasts = any(map(lower.__contains__, _CUES)) and _LASTING.search(lower) is not None
    if not lasts and standing_of_texts([text]) != ["instruction"]:
        return ()
    sentences: list[list[Word]] = [[]]
    for word in read_words(_SINCE_NOW.sub("from now on", text)):
        sentences[-1].append(word)
        if word.kind == lx.STOP:
            sentences.append([])
    instructions: list[Instruction] = []
    others = 0
    for sentence in filter(None, sentences):
        read = None if sentence[-1].text == "?" or len(sentence) > _MOST_WORDS else _read(sentence)
        others += read is None
        instructions += [] if read is None else [read]
    if len(instructions) > 1 or others:
        instructions = [replace(one, alone=False) for one in instructions]
    return tuple(instructions)


def _read(words: Sequence[Word]) -> Instruction | None:
    """The instruction of a sentence; None if it is none that lasts, or has no verb that tells what to do."""
    texts = [word.text for word in words]
    if not _ONCE.isdisjoint(texts):
        return None
    begin, case, stance = _stance(words)
    if begin is None:
        return None
    i, case_words = begin, list(case)
    after = words[i + 1].text if i + 1 < len(words) else ""
    action = _action(words[i], words[i - 1].text if i else "")
    finite = after.endswith(("ed", "s")) and stem_of(after) in lx.VERBS and action not in VERBS
    if after in lx.BE or after in lx.MODALS or finite:
        return None  # "work is in Oslo from now on", "lunch costs ten euros"
    if action is None and words[i - 1].text in ("avoid", "no"):
        action, i = "use", i - 1
    if action is None:
        return None
    roles: dict[str, list[Word]] = {}
    gone: list[str] = []
    role, alone = "", True
    i += 1
    while i < len(words):
        word = words[i]
        text = word.text
        follows = words[i + 1].text if i + 1 < len(words) else ""
        if text in _GONE and roles and (text != "rather" or follows == "than"):
            role = "gone"
        elif word.kind == lx.COMMA or text in ("and", "but", "or"):
            if word.kind == lx.COMMA and follows not in (*_GONE, "or", *_CASES):
                alone = i + 2 >= len(words) or follows == "please"
                break
            if text in ("and", "but") and follows in VERBS:
                alone = False
                break
            role = "" if role == "gone" else role
        elif text in _RELEASES:
            stance = 0 if stance >= 0 else stance
        elif text in _CASES:
            role = "case"
        elif role not in ("case", "gone") and text in lx.PREPOSITIONS | {"as"}:
            role = "case" if text == "for" and follows in ("this", "these", "all") else text
        elif word.kind not in (lx.STOP, lx.MARK) and text not in _UNSAID:
            if role == "case":
                case_words.append(word.stem)
            elif role == "gone":
                gone.append(word.stem)
            else:
                roles.setdefault(role, []).append(word)
        i += 1
    if action == "call" and "" in roles:  # "call me Bob": Bob is the value of what I am called
        named = [word for word in roles[""] if word.text != "i"]
        roles |= {"as": roles.get("as", []) + named, "": [word for word in roles[""] if word.text == "i"]}
    if not roles and action not in VERBS:
        return None  # "never mind"
    # "Write to me in Polish" is not written of me.
    values = {role: tuple(some) for role, some in roles.items() if some and (role, some[0].text) != ("to", "i")}
    return Instruction(action, stance, values, frozenset(case_words), frozenset(gone), alone)


def _stance(words: Sequence[Word]) -> tuple[int | None, list[str], int]:
    """The place of the verb, the stems of the case before it, and what is said of the action."""
    # A case leads in: "When I ask for code, ...", "For this project, ...".
    first = next((i for i, word in enumerate(words) if word.text in _CASES or word.text not in _LEADING), 0)
    commas = (i for i in range(first + 1, len(words) - 1) if words[i].kind == lx.COMMA)
    begin = next(commas, -1) + 1 if words[first].text in _CASES | {"for"} else 0
    case = [word.stem for word in words[:begin] if word.kind != lx.COMMA and word.text not in _UNSAID]
    stance = 1
    for i in range(begin, len(words)):
        word = words[i]
        text = word.text
        if text in ("never", "not", "stop", "avoid", "no"):
            stance = -1
        elif text in _RELEASES:
            stance = 0
        elif text in _OBLIGES and i > begin:
            stance = 0 if stance < 1 and words[i - 1].text != "always" else stance
        elif text in _ALLOWS:
            stance = 0 if stance == 1 else stance
        elif text not in _LEADING and word.kind != lx.COMMA:
            skipped = {before.text for before in words[begin:i]}
            habit = "you" not in skipped and skipped & lx.SPEAKERS  # "I never answer in German"
            return (None if habit else i), case, stance
    return None, case, stance


def _action(word: Word, before: str) -> str | None:
    """The action that a verb names, also as "answering"; None for any other word.

    Which words are verbs is not all known: after "always" and the like any is one.
    """
    if word.text.endswith("ed") and word.text != word.stem and word.text not in VERBS:
        return None  # "handed over": a report
    for verb in (word.text, word.stem, word.stem + "e"):
        if verb in VERBS:
            return _ALIKE.get(verb, verb)
    is_told = before in _TELLING and word.kind == lx.WORD and word.text not in STOP_WORDS
    return word.stem if is_told or word.stem in lx.VERBS else None


def judge_instructions(new: str, old: str) -> Verdict | None:
    """The verdict on two texts as instructions, `new` given later than `old`; None unless both are instructions."""
    ours = instructions_of(new)
    theirs = instructions_of(old) if ours else ()
    if not theirs:
        return None
    findings = [finding for mine in ours for his in theirs if (finding := _compared(mine, his)) is not None]
    if not findings:
        return _BOTH
    sure = next((reason for reason, plain in findings if plain), None)
    if sure is not None and theirs[0].alone:
        return Verdict("supersedes", _SURE, sure)
    return Verdict("contradicts", _DOUBTFUL, sure or findings[0][0])


def _compared(new: Instruction, old: Instruction) -> tuple[str, bool] | None:
    """Return how an instruction stands to an earlier one, and whether it plainly replaces it; None if both hold."""
    if new.gone and new.gone & {stem for _, stem in old.content()}:
        return REPLACES, new.action == old.action and old.stance == 1 and new.case == old.case
    if new.stance == 1 and old.gone & new.stems("") and new.action == old.action:
        return UNSURE, False
    mine, his = new.content(), old.content()
    if new.stance != old.stance:
        one_action = new.action == old.action
        if mine == his:
            return (REVERSED, True) if one_action and old.stance else (UNSURE, False) if mine else None
        # The narrower of two is an exception.
        narrower = one_action and new.stance and old.stance and (mine < his or his < mine)
        return (UNSURE, False) if narrower and new.stems("") and new.stems("") == old.stems("") else None
    if new.stance != 1 or new.case != old.case:
        return None
    return _other_value(new, old)


def _other_value(new: Instruction, old: Instruction) -> tuple[str, bool] | None:
    """Return how two things to do in the same case stand to each other: of one thing each gives one value."""
    roles = new.roles.keys() | old.roles.keys()
    differing = [role for role in roles if new.stems(role) != old.stems(role)]
    if len(differing) != 1:
        return None
    (role,) = differing
    mine, his = new.roles.get(role, ()), old.roles.get(role, ())
    if not mine or not his:
        return None
    ours, theirs = new.stems(role), old.stems(role)
    values = [word for word in mine if word.stem not in theirs], [word for word in his if word.stem not in ours]
    if not all(values):
        return None
    one_action = new.action == old.action
    # "With 4 spaces" and "under 200 words" have one number; "chapter 3" is one of several.
    other = [(word, some[-1]) for some in (mine, his) for word in some if word.stem not in ours & theirs]
    if one_action and all(word.kind in _EXACT and (word.unit or word is not last) for word, last in other):
        return VALUE, True
    if role == "":
        # "Use tabs for indentation", "keep answers short": the same purpose or the same thing, otherwise.
        shared = ours & theirs or len(roles) > 1
        return (UNSURE, False) if one_action and shared and new.action in _CHOOSING else None
    if role == "to" and new.stems("") and not all(word.kind in lx.NAMED for some in values for word in some):
        return None  # "add comments to classes": to functions as well
    if role not in _OF_VALUES or not (one_action or new.stems("")):
        return None
    languages = [all(word.stem in LANGUAGES or word.text in LANGUAGES for word in some) for some in values]
    if all(languages) or role == "as":
        return VALUE, one_action
    # "In Polish" and "in full sentences" are values of two kinds.
    kinds = [{word.kind in lx.NAMED for word in some} for some in values]
    return None if role == "in" and (any(languages) or kinds[0].isdisjoint(kinds[1])) else (UNSURE, False)
