"""Traits of a statement: words of change, rare words, persons and values, and whether it says that it is over."""

from __future__ import annotations

from msgspec import Struct, structs

from recallite.text.patterns import lazily, read_tables
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.other_languages import is_former
from recallite.text.statements.statement import Statement
from recallite.text.statements.statement_words import ALIKE, SKIPPED, Word
from recallite_kernels.arguments import DENIED, ENDED

# Words and phrases that tell of change, by kind; the clause in which they stand says what changed.
_CUE_PHRASES = {
    "stopped": r"no longer|any more|any longer|no more|(?:gave|given|give|giving) (?:it |that )?up|done with"
    r"|through with|off (?:the )?\w+ (?:now|completely)|came off|got rid|never again",
    "ended": r"called? off|call it off|fell through|passed away|broke up|split up|laid off|stepped down|moved out"
    r"|last day|handed in|out of business|dropped out",
    "changed": r"took over|taken over|went (?:back|over|up|down)|rather than",
    "shifted": r"(?:up|down) to|brought forward",
    "now": r"these days|from (?:now|tomorrow|next|[jfmaond]\w+y|[jfmason]\w+r|\w+day) on|as of|so far"
    r"|this (?:morning|week|month|year|term)",
    "again": r"once more",
    "corrected": r"turn(?:s|ed) out|after all|scratch that|i was wrong|in the end|change of plans?|heads up|not true"
    r"|forget what",
    "done": r"picked up",
    "added": r"as well|in addition|apart from",
    "then": r"last (?:week|month|year|night|spring|summer|autumn|fall|winter|time|\w+day)|in (?:19|20)\d\d|used to"
    r"|as a (?:child|kid)|when i was|back then",
    "instead": r"rather than|not\b.{1,30}\bbut|from .{1,30} to|in favou?r of|over to",
}
_KINDS_OF: dict[str, tuple[str, ...]] = {}
for _kind, _text in read_tables(__file__).items():
    for _word in _text.split():
        _KINDS_OF[_word] = (*_KINDS_OF.get(_word, ()), _kind)
_CHANGING_WORDS = frozenset(_KINDS_OF)
_SPOKEN = lazily(r"[a-z]+(?:'[a-z]+)?")
# With the boundaries outside of the groups, and a look ahead for the first word, it takes a tenth of the time.
_FIRST_WORDS = (
    "any|as|after|apart|back|broke|brought|call|called|came|change|done|down|dropped|fell|forget|from|gave|give|given"
    "|giving|got|handed|heads|i|in|it|laid|last|moved|never|no|not|off|once|out|over|passed|picked|rather|scratch|so"
    "|split|stepped|taken|these|this|through|took|turn|turned|turns|up|used|went|when"
)
_PHRASE = lazily(
    rf"\b(?=(?:{_FIRST_WORDS})\b)(?:" + "|".join(f"(?P<{kind}>{some})" for kind, some in _CUE_PHRASES.items()) + r")\b"
)
# Two words or more; what somebody says follows a comma, a colon or a verb.
_TITLE = lazily(
    r"(?<![,:] )(?<!said )(?<!says )(?<!told )[\"\u201c][A-Z][^\"\u201d ]{0,40} [^\"\u201d]{1,60}[\"\u201d]"
)
# Within a sentence: not its first word.
_CAPITAL = lazily(r"(?<=[\w,;] )[A-Z][\w']*")
_UNNAMED_WEIGHT = 9.0
_KIN_KEYS = frozenset(ALIKE.get(stem, stem) for stem in lx.KIN)
_SILENT_KINDS = frozenset((lx.STOP, lx.COMMA, lx.MARK, lx.UNIT))
_FIRST = frozenset(("i", "me", "my", "we", "our"))
_ANAPHORS = frozenset(("he", "she", "it", "they", "that", "this"))


class Gist(Struct, frozen=True, gc=False):
    """The gist of a statement, as its keys need it.

    - `order`: the keys of all its words
    - `weights`: how rare its content words are, in bits; `heads`: the keys of its subjects
    - `names`; `headed`: kin and names that are a subject or own it
    - `subjects`: what its words are about
    - `first`: in the first person
    """

    order: tuple[str, ...]
    weights: dict[str, float]
    heads: frozenset[str]
    names: frozenset[str]
    headed: frozenset[str]
    subjects: frozenset[str]
    first: bool


class Traits(Gist, frozen=True, gc=False):
    """The traits of one statement, beside its gist.

    - `total`: the sum of its weights; `known_heads`: the weights of its subjects
    - `persons`: kin and names
    - `numbers`: values by unit or kind; `labels`: numbers that name, with what they number ("invoice 443")
    - `terms`: all words, "@" for names and kinds for values
    - `states`: words of `lexicon.STATUS` with their line
    - `listed`: it lists or has parts; `pronoun`: begins with a pronoun
    - `past`: tells of events alone; `lasting`: of a state or plan
    """

    total: float
    known_heads: dict[str, float]
    persons: frozenset[str]
    numbers: dict[str, set[str]]
    labels: dict[str, str]
    terms: tuple[str, ...]
    states: dict[int, str]
    listed: bool
    pronoun: bool
    past: bool
    lasting: bool
    negated: bool


def content_of(words: tuple[Word, ...]) -> set[str]:
    """The keys of words, without words that say nothing."""
    return {word.meaning for word in words} - SKIPPED


def gist_of(statement: Statement) -> Gist:
    """The gist of a statement, computed once."""
    if isinstance(statement.gist, Gist):
        return statement.gist
    order: list[str] = []
    weights: dict[str, float] = {}
    names: list[str] = []
    begins, first = True, False
    for word in statement.words:
        kind = word.kind
        if kind in _SILENT_KINDS:
            begins = kind == lx.STOP
            continue
        order.append(word.meaning)
        if word.weight:
            weights[word.meaning] = word.weight
            if kind == lx.NAME and not (begins and _is_common(word)):
                names.append(word.meaning)
        elif word.text in _FIRST:
            first = True
        begins = False
    heads = frozenset([word.meaning for clause in statement.clauses for word in clause.head])
    named = frozenset(names)
    subjects = frozenset([lx.SUBJECTS[key] for key in weights if key in lx.SUBJECTS])
    gist = Gist(tuple(order), weights, heads, named, heads & _KIN_KEYS | heads & named, subjects, first)
    statement.gist = gist
    return gist


def traits_of(statement: Statement) -> Traits:
    """The traits of a statement, computed once."""
    if isinstance(statement.traits, Traits):
        return statement.traits
    gist = gist_of(statement)
    weights, names = gist.weights, gist.names
    numbers: dict[str, set[str]] = {}
    labels: dict[str, str] = {}
    states: dict[int, str] = {}
    terms: list[str] = []
    before, listed, begins, status = None, False, True, lx.STATUS
    for word in statement.words:
        kind = word.kind
        if kind in _SILENT_KINDS:
            begins, before = kind == lx.STOP, None
            listed = listed or kind == lx.COMMA
            continue
        key = word.meaning
        terms.append(f"#{kind}" if kind in lx.TYPED or kind == lx.IDENTIFIER else key)
        if word.text in status:
            states[status[word.text]] = word.stem
        if kind in lx.TYPED:
            unit = word.unit if kind == lx.NUMBER else "date" if kind == lx.DATE else "day or time"
            numbers.setdefault(unit, set()).add(key)
            if kind == lx.NUMBER and not word.unit and before is not None and _is_plain_noun(before):
                labels[before.meaning] = key
        elif kind == lx.NAME and key in names and word.text not in SKIPPED and not (begins and _is_common(word)):
            terms[-1] = "@"
        begins, before = False, word
    clauses = statement.clauses
    traits = statement.traits = Traits(
        **structs.asdict(gist),
        total=sum(weights.values()),
        known_heads={key: weights[key] for key in gist.heads if key in weights},
        persons=frozenset(_KIN_KEYS.intersection(gist.order) | names),
        numbers=numbers,
        labels=labels,
        terms=tuple(terms),
        states=states,
        listed=listed or "and" in [word.text for word in statement.words],
        pronoun=bool(statement.words) and statement.words[0].text in _ANAPHORS,
        past=bool(clauses) and all(clause.past and not clause.perfect for clause in clauses),
        lasting=any(not clause.past or clause.plan for clause in clauses),
        negated=statement.negated,
    )
    return traits


def _is_plain_noun(word: Word) -> bool:
    """Whether a number after a word may name which one it is: "invoice 443"."""
    plain = word.kind in (lx.WORD, lx.NAME) and word.text not in SKIPPED
    return plain and word.stem not in lx.VERBS and word.stem not in lx.ATTRIBUTES


def _is_common(word: Word) -> bool:
    """Whether a capitalised word at the beginning of a sentence may be no name."""
    return word.weight < _UNNAMED_WEIGHT or word.stem in lx.ATTRIBUTES


def cues_of(statement: Statement) -> frozenset[str]:
    """The kinds of words of change in a statement, found once; keys do without, in half of the time."""
    if statement.cues is not None:
        return statement.cues
    text = statement.text
    if text.count('"') > 1 or "\u201c" in text:
        text = _TITLE.sub("", text)
    # Words of change that are part of a name tell of none: the song "Get Back". A heading stays as it is.
    capitals = [match[0] for match in _CAPITAL.finditer(text)]
    names = [word for word in capitals if word.lower() in _CHANGING_WORDS]
    if names and 2 * len(capitals) <= len(text.split()):
        text = _CAPITAL.sub(lambda match: "" if match[0].lower() in _CHANGING_WORDS else match[0], text)
    text = text.lower().replace("\u2019", "'")
    kinds = {match.lastgroup or "" for match in _PHRASE.finditer(text)}
    spoken = _SPOKEN.findall(text)
    for word in _CHANGING_WORDS.intersection(spoken):
        kinds.update(_KINDS_OF[word])
    if "n't" in text and any(word.endswith("n't") and word not in _KINDS_OF for word in spoken):
        kinds.add("none")
    statement.cues = frozenset(kinds)
    return statement.cues


# Statements that say they are over: "I used to live in Berlin", "Uses TSLint. Replaced by ESLint".


def over_of(statement: Statement) -> int:
    """`ENDED` if all that a statement says is over, `DENIED` if it says that something no longer holds, else 0."""
    if is_former(statement):
        return ENDED
    clauses = statement.clauses
    if not clauses or not statement.whole or any(clause.unreal or clause.sourced for clause in clauses):
        return 0
    if all(clause.former for clause in clauses) or _is_replaced(statement):
        return ENDED
    return DENIED if len(clauses) == 1 and clauses[0].stopped and not clauses[0].plan else 0


def successor_of(statement: Statement) -> frozenset[str]:
    """The keys of the names in "it was replaced by B"; empty for a statement that does not end so."""
    if not _is_replaced(statement):
        return frozenset()
    return frozenset([word.key for _, words in statement.clauses[-1].chunks for word in words if word.kind in lx.NAMED])


def _is_replaced(statement: Statement) -> bool:
    """Whether the last clause says that what the others are about was replaced: "..., it was replaced by B"."""
    last = statement.clauses[-1] if statement.clauses else Clause()
    done = last.past or last.perfect
    unnamed = last.subject <= lx.UNRESOLVED
    return last.relation == "replac" and last.passive and done and unnamed and not (last.negated or last.plan)
