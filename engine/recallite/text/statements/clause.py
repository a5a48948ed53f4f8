"""A clause of a text: what it says, of what, and what in it tells of change.

`statement` finds where a clause begins, its subject and its verb. `read_predicate` reads the verb into the clause, then
`read_complement` reads what follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from recallite.text.patterns import lazily, word_set
from recallite.text.statements import lexicon as lx
from recallite.text.statements.statement_words import Word, text_of


class Clause(Struct, gc=False):
    """A clause, as read; nothing changes it afterwards.

    - `subject`: stems of what is spoken of; "my" and "I" count as the speaker, "our" as nothing
    - `head`: the words of the subject
    - `relation`: the stem of its verb; "be" for what is, is called or is changed to
    - `chunks`: what is said of the subject, the content words of each role: "" for the object, "time" for when, else
      a preposition
    - `stated`: the keys of its words without times; `every`: with times
    - `nouns`: what the first role names before "of": "city" in "the city of London"
    - `opening`: what it begins with, where or for whom: "In Prague we ..."
    - `rest`: content words of parts that add with whom or why
    - `gone`: what held before, as the clause says: "from A", "instead of A", "not A"; `listed`: several, by "and"
    - `passive`, `past`, `perfect`, `plan`, `negated`, `command`: its form
    - `change`: takes another value; `ends`: something ends; `stopped`: "no longer"; `now`: "now", "these days";
      `yet`: "yet", "already"; `corrected`: "sorry", "actually"; `former`: "used to"
    - `passing`: for a time only: "this week", "until Sunday", "while it rains"; `bounded`: only if or while something
      else holds
    - `unreal`: "if", "maybe"; `sourced`: somebody says or thinks so
    - `definite`: the object has "the", "my" or "our"
    - `owned`: the subject is somebody's: "Ada's dentist", "my dentist"
    - `assigned`: a name is given a value by a mark: "port: 80", "PORT=80"
    - `moved`: the verb by which something takes another value
    - `placing`: the preposition that the role "in" stands for: "works at" and "works in" say two things
    """

    subject: frozenset[str] = frozenset()
    head: tuple[Word, ...] = ()
    relation: str = ""
    chunks: tuple[tuple[str, tuple[Word, ...]], ...] = ()
    stated: frozenset[str] = frozenset()
    every: frozenset[str] = frozenset()
    nouns: tuple[str, ...] = ()
    opening: tuple[Word, ...] = ()
    rest: tuple[Word, ...] = ()
    gone: tuple[Word, ...] = ()
    listed: bool = False
    negated: bool = False
    passive: bool = False
    past: bool = False
    perfect: bool = False
    plan: bool = False
    command: bool = False
    change: bool = False
    ends: bool = False
    stopped: bool = False
    now: bool = False
    yet: bool = False
    corrected: bool = False
    former: bool = False
    passing: bool = False
    bounded: bool = False
    unreal: bool = False
    sourced: bool = False
    definite: bool = False
    owned: bool = False
    assigned: bool = False
    moved: str = ""
    placing: str = ""

    @property
    def replaces(self) -> bool:
        """Whether it says that one thing replaced another, whoever did that: "A was replaced by B", "B replaced A"."""
        if self.relation != "replac":
            return False
        return self.passive or (self.subject <= self.stated if self.subject else "" not in dict(self.chunks))


# The verb of a clause: its relation, tense and negation, and whether it tells of change.

_PLANS = frozenset(("plan", "want", "hope", "intend", "decid", "like", "aim", "expect", "agre", "commit", "need"))
_GETS, _DOES = frozenset(("got", "get", "gets")), frozenset(("do", "does", "did"))
_LEADING = _PLANS | {"stop", "quit", "start", "begin"}
# What one did "whether" or "about", and has settled since.
_DELIBERATES = lx.stems("debate consider weigh contemplate ponder think")
# "The tool used to build it is Bazel."
_FINITE = frozenset(("is", "are", "was", "were"))
_SKIPPED = lx.FILLERS | lx.NEGATIONS | lx.NOW


def read_predicate(words: Sequence[Word], i: int, clause: Clause) -> tuple[int, bool]:
    """Read the verb that begins with word i into a clause with a known subject.

    Returns the index of the word after it, and whether it has "must".
    """
    for word in clause.head:
        if word.text not in lx.FORMER:
            _adverb(word, clause)
    clause.former = clause.former or (i > 0 and words[i - 1].text in lx.FORMER)
    mentions_new = "new" in map(text_of, clause.head)  # a new number, address or boss
    if mentions_new and not clause.plan and any(word.stem in lx.ATTRIBUTES for word in clause.head):
        clause.now = True
    being = relation = ""
    expects = must = False
    size = len(words)
    while i < size:
        word = words[i]
        text = word.text
        following = words[i + 1] if i + 1 < size else None
        if _adverb(word, clause):
            pass
        elif text == ":":
            being = "be"
        elif text == "used_to":
            clause.former = not being and _FINITE.isdisjoint([later.text for later in words[i + 1 :]])
        elif text == "going_to" and (clause.stopped or (following and following.text in lx.DEFINITE)):
            relation = "go"
            i += 1
            break
        elif text == "going_to":
            clause.plan, being = True, ""
        elif text in lx.MODALS:
            clause.plan = clause.plan or text == "will"
            must, expects = text == "must", True
        elif text in ("have", "has", "had") and not being and _participle(words, i + 1):
            clause.perfect = True
            clause.past = clause.past or text == "had"
        elif text in _DOES and following and (following.stem in lx.VERBS or following.text in lx.NEGATIONS):
            clause.past = clause.past or text == "did"
            expects = True
        elif text in _GETS and not _participle(words, i + 1):
            relation, clause.past = "get", text == "got"
            i += 1
            break
        elif text in lx.BE or text in _GETS or text == "became":
            being, expects = "be", False
            clause.past = clause.past or text in lx.PAST_BE or text == "got"
            clause.change = clause.change or text in ("became", "become")
        elif word.kind == lx.MARK:
            being = being or "be"
        elif text in lx.FILLERS:
            clause.yet = clause.yet or text == "finally"
        elif word.kind == lx.WORD and (expects or _verbal(word, being)):
            skipped = _leads_on(words, i, clause)
            if skipped:
                being, i, expects = "", i + skipped, skipped > 1
                continue
            relation, being = _main_verb(word, being, clause), ""
            if clause.past and not clause.head and following is not None and following.text == "by":
                clause.passive = True
            i += 1
            break
        elif being and text in lx.PARTICLES and following and following.text in ("to", "from"):
            clause.change = True
        else:
            break
        i += 1
    if clause.perfect and (clause.passive or relation in lx.CHANGES or relation in lx.ENDS):
        clause.now = True
    if relation == "stand" and clause.negated:
        relation, clause.negated = "hate", False
    clause.relation = relation or being or "have"
    return i, must


def _adverb(word: Word, clause: Clause) -> bool:
    """Note an adverb of change, negation or doubt."""
    text = word.text
    if text in lx.STOPPED:
        clause.negated = clause.stopped = clause.now = True
    elif text in lx.NEGATIONS:
        clause.negated = True
    elif text in lx.NOW:
        clause.now = True
    elif text in lx.FORMER:
        clause.former = True
    elif text in lx.UNREAL:
        clause.unreal = True
    elif text in lx.CORRECTIONS:
        clause.corrected = True
    elif text == "already":
        clause.yet = True
    else:
        return False
    return True


def _verbal(word: Word, being: str) -> bool:
    """Whether a word is the main verb; after "is" a base form is none: "is clean", "is open"."""
    if being and word.text == word.base and not word.text.endswith(("ing", "ed")):
        return word.text in ("set", "cut", "put", "split", "hit", "hurt", "shut")
    if word.stem in lx.VERBS:
        return True
    return len(word.text) > 4 and word.text.endswith(("ing", "ed") if being else "ed")


def _leads_on(words: Sequence[Word], i: int, clause: Clause) -> int:
    """The number of words to skip if a verb only introduces another: "plans to move", "stopped smoking"."""
    stem = words[i].stem
    if stem not in _LEADING:
        return 0
    after = next((word.text for word in words[i + 1 : i + 3] if word.text not in lx.FILLERS), "")
    if stem in _PLANS and after in ("to", "not"):
        clause.plan = True
        clause.negated = clause.negated or after == "not"
        clause.change = clause.change or stem == "decid"
        return 3 if after == "not" else 2
    if stem in ("stop", "quit") and (after.endswith("ing") or after == "going_to"):
        clause.negated = clause.stopped = clause.now = True
        return 1
    if stem in ("start", "begin") and after.endswith("ing"):
        clause.change = clause.now = True
        return 1
    return 0


def _main_verb(word: Word, being: str, clause: Clause) -> str:
    """The relation of the main verb; notes its tense and voice."""
    text = word.text
    if being and text.endswith("ing"):
        clause.former = clause.former or (clause.past and word.stem in _DELIBERATES)
        return word.stem
    if being:
        clause.passive = True
    elif not clause.perfect and (
        (text.endswith("ed") and text != word.stem) or (text != word.base and not text.endswith("s"))
    ):
        clause.past = True
    return word.stem


def _participle(words: Sequence[Word], i: int) -> bool:
    """Whether a participle or a state follows: "has moved", "got fixed"."""
    while i < len(words) and words[i].text in _SKIPPED:
        i += 1
    if i >= len(words) or words[i].kind != lx.WORD:
        return False
    text = words[i].text
    return text.endswith("ed") or text in ("been", "become", "got") or text != words[i].base or text in lx.STATUS


# Complements: the words of a clause by role, what it says held before, and what takes another value.

# Verbs that change something only to an amount: "went up to", "came down to".
_WEAK = word_set("go come bring cut set turn hand drop return rise fall grow get")
# What a person has changed whose verb names no object.
MOVES = {
    "move": "live", "reloc": "live", "transfer": "studi", "switch": "use", "migrat": "use", "upgrad": "use",
    "downgrad": "use", "chang": "use", "convert": "use",
}  # fmt: skip
_REPLACES = lx.stems("replace substitute trade exchange supersede succeed")
# Verbs that say the same of what came before, if they name it: "B succeeded A", "B took over from A".
_SUCCEEDS = lx.stems("replace supersede succeed")
_POSTPONES = lx.stems("reschedule postpone rebook")
_HANDS = frozenset(("hand", "reassign"))
_MENDS = lx.stems("fix repair resolve solve merge deliver ship approve reject")
_RETURNS = lx.stems("send give bring take hand")
_PUTS = lx.stems("put place leave keep store")
_MAKES = frozenset(["make", "turn", "switch", "set", "mark", "get", "keep", "dye", "cut", "paint"])
# Verbs of one relation.
_ALIKE = {
    "resid": "live", "reloc": "live", "enrol": "studi", "attend": "studi", "join": "work", "commenc": "start",
    "begin": "start",
}  # fmt: skip
# After these verbs the complement says what the subject is: "is called Ada".
_STANDING = lx.stems("set schedule plan book call name locate base price rename expect headquarter")
PLACING = {"in": "in", "on": "in", "at": "in", "into": "in", "inside": "in", "onto": "in"}
_DATES = frozenset((lx.DAY, lx.DATE))
_TIMES = _DATES | {lx.CLOCK}
SINCE = frozenset(("from", "since", "after", "as_of", "starting", "beginning"))
LASTING = frozenset(("until", "till", "during", "while", "when"))
"""Words after which a statement holds only for a time, or only while something else does."""
CONDITIONS = frozenset(("if", "unless", "whenever"))
"""Words after which a statement holds only sometimes: "my manager is Ann if Tom is away"."""
OPENING_CONDITIONS = CONDITIONS | {"should", "provided", "providing", "supposing", "suppose", "assuming"}
"""Words that open a sentence with a condition: "should it rain, ..."."""
_READERS = lx.SPEAKERS | {"you", "anybody", "anyone", "somebody", "someone", "necessary", "needed"}
_THEMSELVES = frozenset((lx.NAME, lx.IDENTIFIER, lx.NUMBER, lx.CLOCK, lx.DAY))
YEAR = lazily(r"(?:19|20)\d\d")
_HOUR = lazily(r"(?:1?\d|2[0-4])(?:\.[0-5]\d)?")
_SAYS = word_set("say says said think thinks guess believe believes reckon heard claims")
_IGNORED = lx.FILLERS | lx.ARTICLES | (lx.BE - {"stay"})
# Words that `read_special` reads.
_MEANINGFUL = (
    lx.NOW | lx.CORRECTIONS | lx.ADJUNCTS | lx.NEGATIONS | lx.PREPOSITIONS | lx.PARTICLES | lx.DEFINITE
    | {"left", "yet", "already", "instead", "instead_of", "according", "out_of", "i", "until", "but"}
)  # fmt: skip
_SPECIAL = _IGNORED | _MEANINGFUL
# Words that say nothing wherever they stand.
_SILENT = _IGNORED - _MEANINGFUL - _SAYS - {"as", "no_longer"}
# "That's great", "Wow, this is it": nobody can tell what is spoken of.
_DEICTIC = frozenset(("this", "that", "these", "those", "it", "there"))
_NOTHING = frozenset(("it",))
_LY_NOUNS = frozenset(("family", "supply", "assembly", "anomaly", "monopoly", "butterfly"))
_OWNERS = lx.DEFINITE - {"my"}
_NO_SUBJECT = (
    _IGNORED | lx.PREPOSITIONS | lx.NOW | lx.NEGATIONS | lx.CORRECTIONS | lx.MODALS
    | {"new", "current", "latest", "have", "do", "will"}
) - {"stay"}  # fmt: skip


def is_passing(word: Word) -> bool:
    """Whether a word is of a time that is now, and passes: "this week", "tonight"."""
    return word.text.startswith("this ") or word.text in ("today", "tonight")


def _is_now_alone(words: Sequence[Word], begin: int) -> bool:
    """Whether what follows a verb is only such a time, and a new one: "is now this Friday"."""
    said = [word for word in words[begin:] if word.weight and word.text not in lx.NOW]
    told = any(word.text in lx.NOW and not is_passing(word) for word in words)
    return told and len(said) == 1 and is_passing(said[0])


def _is_of_past(words: Sequence[Word], begin: int) -> bool:
    """Whether the first verb after the subject that begins with a word is in the past: "when I got married"."""
    for before, word in pairwise(words[begin:]):
        text = word.text
        if word.kind in (lx.COMMA, lx.STOP):
            break
        past = text.endswith("ed") and before.text not in lx.ARTICLES and before.text not in lx.DEFINITE
        if past or text in lx.BE or text in lx.MODALS or word.stem in lx.VERBS:
            return past or text in lx.PAST_BE or (text != word.base and not text.endswith(("s", "ing", "ed")))
    return False


def is_of_reader(words: Sequence[Word]) -> bool:
    """Whether what follows "if" only says for whom it is said: "my number is 555-0202 now if you need me"."""
    return len(words) > 0 and words[0].text in _READERS


class _Complement:
    """The words after a verb, by role, while they are read one by one."""

    def __init__(self, clause: Clause, speaker: str) -> None:
        self.clause, self.speaker = clause, speaker
        self.parts: list[tuple[str, list[Word]]] = [("", [])]
        self.gone: list[Word] = []
        self.rest: list[Word] = []
        self.into = self.parts[0][1]
        self.to = -1
        self.changes = clause.relation in lx.CHANGES or (clause.change and clause.relation == "be")
        self.replaces = clause.relation in _REPLACES

    @property
    def begun(self) -> bool:
        return bool(self.parts[0][1]) or len(self.parts) > 1

    def begin(self, role: str, preposition: str = "") -> None:
        self.clause.placing = self.clause.placing or preposition
        self.parts.append((role, []))
        self.into = self.parts[-1][1]

    def read(self, words: Sequence[Word], i: int) -> None:
        word = words[i]
        kind = word.kind
        if kind == lx.COMMA:
            if self.begun and not (i + 1 < len(words) and words[i + 1].text in ("not", "instead_of")):
                self.into = self.rest
        elif kind in (lx.STOP, lx.MARK):
            pass
        elif self.into is self.rest and word.text in _SAYS:
            self.clause.sourced = True
        elif kind == lx.WORD and word.text in _SPECIAL:
            self.read_special(words, i)
        else:
            if kind == lx.DATE:
                if is_passing(word):
                    self.clause.now = True
                    self.clause.passing = self.clause.passing or words[i - 1].text not in SINCE
                elif words[i - 1].text in ("a", "per"):
                    word = replace(word, kind=lx.WORD)
            self.into.append(word)

    def read_special(self, words: Sequence[Word], i: int) -> None:
        """Read a function word, or one that tells of change."""
        word, clause = words[i], self.clause
        text = word.text
        last = i + 1 == len(words) or words[i + 1].kind == lx.STOP or words[i + 1].text in lx.NOW
        if text in lx.NOW:
            clause.now = True
            clause.passing = clause.passing or (text == "today" and words[i - 1].text not in SINCE)
            clause.stopped = clause.stopped or (text == "anymore" and clause.negated)
        elif text == "no_longer":
            clause.negated = clause.stopped = True
        elif text == "yet" or text == "already":
            clause.yet = True
        elif text == "instead":
            clause.change = True
        elif text == "instead_of" or (text == "not" and words[i - 1].kind == lx.COMMA):
            self.into = self.gone
            clause.change = True
            clause.corrected = clause.corrected or text == "not"
        elif text in lx.CORRECTIONS:
            clause.corrected = True
        elif text == "according":
            clause.sourced = True
            self.into = self.rest
        elif self.into is self.rest:
            pass
        elif text == "but":
            if clause.negated and self.begun:  # "no longer in Word but in Typst"
                self.gone += [other for _, some in self.parts for other in some]
                clause.negated = clause.stopped = False
                clause.change = True
                self.parts = [("", [])]
                self.into = self.parts[0][1]
        elif text == "from" and not last and words[i + 1].kind in _DATES:
            clause.now = True
        elif text == "from" and clause.relation == "take" and words[i - 1].text == "over":
            self.into, clause.relation = self.gone, "replac"
        elif (text == "from" and (self.changes or clause.relation in ("be", "get"))) or (
            text in ("out_of", "off") and not last and (self.changes or clause.relation == "take")
        ):
            self.into = self.gone
        elif (text in ("to", "into", "onto", "until") and (self.changes or self.into is self.gone)) or (
            text == "for" and clause.relation in _POSTPONES
        ):
            self.begin("to")
            self.to = len(self.parts) - 1
        elif self.replaces and (
            text in ("with", "by") or (text == "for" and not clause.passive and clause.relation != "replac")
        ):
            self.gone += clause.head if clause.passive else [other for _, some in self.parts for other in some]
            self.parts = [("", [])]
            self.into = self.parts[0][1]
        elif text == "over" and clause.relation == "prefer":
            self.into = self.gone
        elif text in lx.ADJUNCTS and self.begun:
            clause.now = clause.now or text == "since" or text == "as_of"
            bounds = text in LASTING and not _is_of_past(words, i + 1)
            bounds = bounds or (text in CONDITIONS and not (clause.now and is_of_reader(words[i + 1 :])))
            clause.bounded = clause.bounded or bounds
            clause.passing = clause.passing or bounds
            self.into = self.rest
        elif text in lx.NEGATIONS:
            if self.begun:
                self.into.append(word)
            else:
                clause.negated = True
        elif text == "of":
            if not clause.nouns and self.into is not self.gone and all(other.kind == lx.WORD for other in self.into):
                clause.nouns = tuple(other.stem for other in self.into)
        elif text in lx.PARTICLES and (last or words[i + 1].text == "in"):
            self.parts[0][1].append(word)
        elif (
            (text == "left" and last)
            or (text in ("up", "down", "off", "out", "back", "away") and self.changes)
            or (text == "about" and not last and words[i + 1].kind == lx.NUMBER)
        ):
            pass
        elif text in lx.PREPOSITIONS or text == "out_of" or text == "as":
            if self.into is not self.gone or self.gone:
                timed = not last and words[i + 1].kind in lx.TYPED
                self.begin(PLACING.get(text, text), text if text in PLACING and not timed else "")
        elif text in lx.DEFINITE or text == "i":
            clause.definite = clause.definite or (not self.parts[0][1] and text in ("the", "my", "our"))
            if text != "the":
                self.into.append(word.with_stem(self.speaker) if text in ("my", "i") else word)
        elif text == "the":
            clause.definite = clause.definite or not self.parts[0][1]


def read_complement(
    words: Sequence[Word], begin: int, clause: Clause, speaker: str, opened: Sequence[Word], *, must: bool
) -> None:
    """Read what follows the verb, from word `begin`, into a clause; `opened`: times that its beginning names."""
    complement = _Complement(clause, speaker)
    for i in range(begin, len(words)):
        word = words[i]
        # Most words only stand for themselves, or for nothing: read without a call, a text takes a third less.
        if word.kind == lx.WORD:
            text = word.text
            if text not in _SPECIAL and text not in _SAYS:
                complement.into.append(word)
            elif text not in _SILENT:
                complement.read(words, i)
        elif word.kind in _THEMSELVES:
            complement.into.append(word)
        else:
            complement.read(words, i)
    if clause.passing and _is_now_alone(words, begin):
        clause.passing = False
    parts, verb = complement.parts, clause.relation
    if complement.replaces and not complement.gone and not clause.passive and (parts[0][1] or verb == "replac"):
        complement.gone += parts[0][1]
        parts[0] = ("", [word for word in clause.head if word.text not in lx.DEFINITE])
    if clause.relation in _SUCCEEDS and complement.gone:
        clause.relation = "replac"
    if verb == "renam" and clause.passive:
        complement.gone += clause.head
    if complement.changes and complement.to >= 0 and parts[complement.to][1]:
        parts = _changed(complement, clause)
    else:
        parts = _made(parts, clause)
    done = clause.past or clause.perfect or clause.passive or must or verb in ("quit", "dump")
    back = parts[0][1]
    if verb in _RETURNS and len(back) > 1 and back[-1].text == "back" and not clause.negated:
        clause.ends = done
        parts[0] = ("", back[:-1])
    else:
        clause.ends = verb in lx.ENDS and not clause.negated and done
    if clause.passive and clause.relation in _STANDING:
        clause.relation = "be"
    elif not clause.passive:
        clause.relation = _ALIKE.get(clause.relation, clause.relation)
    clause.subject = _subject_of(clause.head, speaker)
    clause.chunks = _chunks(parts, opened)
    stated: list[str] = []
    timely: list[str] = []
    for role, some in clause.chunks:
        keys = [word.key for word in some if word.text not in _OWNERS]
        (timely if role == "time" else stated).extend(keys)
    clause.stated = frozenset(stated)
    clause.every = clause.stated.union(timely) if timely else clause.stated
    clause.rest = tuple(complement.rest)
    if complement.gone:
        clause.gone = tuple([word for word in complement.gone if word.kind not in _DATES]) or tuple(complement.gone)
        clause.listed = len(clause.gone) > 1 and any(word.text in ("and", ",") for word in words[begin:])


def _changed(complement: _Complement, clause: Clause) -> list[tuple[str, list[Word]]]:
    """The words by role of a clause in which something takes another value, which becomes its subject."""
    parts, target = complement.parts, complement.parts[complement.to][1]
    verb = clause.relation
    amount = any(word.kind in lx.TYPED for word in target)
    handed = verb in _HANDS and all(word.kind == lx.NAME for word in target)
    if verb in _WEAK and not amount and not handed and not (parts[0][1] and verb == "set"):
        return parts
    clause.change, clause.moved = True, verb
    changed = tuple(word for _, some in parts[: complement.to] for word in some)
    if verb in _HANDS and changed and not clause.passive:
        complement.gone += clause.head
    if changed and not clause.passive:
        others = [word for word in changed if word.text not in ("its", "his", "her", "their")]
        bare = len(changed) == 1 and changed[0].text.endswith("s") and not clause.definite
        if (
            others
            and (bare or len(others) < len(changed))
            and not all(word.text in lx.PRONOUNS for word in clause.head)
        ):
            changed = (*clause.head, *others)  # "Ada changed her bank", "Ada changed banks"
        clause.head, clause.relation = changed, "be"
    else:
        personal = not clause.passive and any(  # somebody, not something
            word.kind == lx.NAME or word.text in lx.PRONOUNS or word.text in ("my", "our") for word in clause.head
        )
        personal = personal and not any(word.stem in lx.ATTRIBUTES for word in clause.head)
        personal = personal and not all(word.kind in _TIMES for word in target)  # "yoga moved to Wednesdays"
        clause.relation = MOVES.get(verb, "be") if personal else "be"
    return [("" if clause.relation == "be" else "in", target), *parts[complement.to + 1 :]]


def _made(parts: list[tuple[str, list[Word]]], clause: Clause) -> list[tuple[str, list[Word]]]:
    """The words by role of a clause that may say that something was made so: "made the repository public"."""
    stated = parts[0][1]
    if clause.passive or not stated:
        return parts
    if clause.relation in ("rewrit", "rebuild", "reimplement", "redesign") and len(parts) > 1:
        clause.head, clause.relation, clause.change = tuple(stated), "be", True
        return parts[1:]
    if clause.relation in _MAKES and len(stated) > 1 and stated[-1].text in lx.STATUS:
        clause.head, clause.relation, clause.change = tuple(stated[:-1]), "be", True
        return [("", stated[-1:]), *parts[1:]]
    if clause.relation in _PUTS and (clause.change or clause.now) and len(parts) > 1 and parts[1][0] == "in":
        clause.head, clause.relation = tuple(stated), "be"
        return parts[1:]
    if clause.relation in _MENDS and (clause.past or clause.perfect):
        clause.head, clause.passive = tuple(stated), True
        return [("", []), *parts[1:]]
    if clause.relation == "turn":
        clause.relation, clause.change = "be", True
    return parts


def _chunks(
    parts: Sequence[tuple[str, list[Word]]], opened: Sequence[Word]
) -> tuple[tuple[str, tuple[Word, ...]], ...]:
    by_role: dict[str, list[Word]] = {}
    for role, words in parts:
        if not [word for word in words if word.kind in lx.TYPED or word.text == "one"]:
            if words:
                by_role.setdefault(role, []).extend(words)
            continue
        for plain_word in words:
            word, into = plain_word, role
            if word.kind == lx.NUMBER and role == "in" and into not in by_role:
                # "at 3" is a time, "at 61,000" an amount.
                timely = not word.unit and _HOUR.fullmatch(word.value) is not None
                clock = word.value.replace(".", ":") if "." in word.value else f"{word.value}:00"
                word = word.with_value(clock, kind=lx.CLOCK) if timely else word
                into = "time" if timely else ""
            elif word.kind in (lx.CLOCK, lx.DAY, lx.DATE):
                into = "time"
            elif len(words) == 1 and role == "in" and word.kind == lx.NUMBER and YEAR.fullmatch(word.value):
                word, into = word.with_value(word.value, kind=lx.DATE), "time"  # "moved to Graz in 2009"
            elif word.text == "one" and len(words) > 1 and word is not words[-1]:
                word = word.with_value("1", kind=lx.NUMBER)
            by_role.setdefault(into, []).append(word)
    if opened:
        by_role.setdefault("time", []).extend(opened)
    return tuple([(role, tuple(some)) for role, some in by_role.items() if some])


def _subject_of(head: Sequence[Word], speaker: str) -> frozenset[str]:
    """Stems of what the words of a subject speak of."""
    if head and head[-1].text in _DEICTIC:
        return _NOTHING
    last = head[-1] if len(head) > 1 else None
    if last and last.kind == lx.WORD and len(last.text) > 5 and last.text.endswith("ly") and last.text not in _LY_NOUNS:
        head = head[:-1]  # an adverb before the verb: "suddenly"
    stems = set()
    for word in head:
        text = word.text
        if text == "i" or text == "my":
            stems.add(speaker)
        elif text in lx.POSSESSIVES:
            if text != "our":
                stems.add(lx.POSSESSIVES[text])
        elif word.kind in lx.TYPED:
            stems.add(word.value + word.unit)
        elif word.stem and text not in _NO_SUBJECT:
            stems.add(word.value or word.stem)
    return frozenset(stems)
