"""The verb of a clause: its relation, tense and negation, and whether it tells of change."""

from __future__ import annotations

from collections.abc import Sequence

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.statement_words import MARK, WORD, Word

_PLANS = frozenset(("plan", "want", "hope", "intend", "decid", "like", "aim", "expect", "agre", "commit", "need"))
_STOPS = frozenset(("stop", "quit"))
_STARTS = frozenset(("start", "begin"))
_GETS = frozenset(("got", "get", "gets"))
_SAME_PARTICIPLE = frozenset(("set", "cut", "put", "split", "hit", "hurt", "shut"))
# What one did "whether" or "about", and has settled since.
_DELIBERATES = lx.stems("debate consider weigh contemplate ponder think")
# "The tool used to build it is Bazel."
_FINITE = frozenset(("is", "are", "was", "were"))
_SKIPPED = lx.FILLERS | lx.NEGATIONS | lx.NOW


def read_predicate(words: Sequence[Word], place: int, clause: Clause) -> tuple[int, bool]:
    """Read the verb that begins at `place` into a clause whose subject is known.

    Returns where what follows it begins, and whether it has "must".
    """
    for word in clause.head:
        if word.text not in lx.FORMER:
            _adverb(word, clause)
    clause.former = clause.former or (place > 0 and words[place - 1].text in lx.FORMER)
    clause.now = clause.now or (_mentions_new(clause.head) and not clause.plan)
    being = relation = ""
    expects = must = False
    size = len(words)
    while place < size:
        word = words[place]
        text = word.text
        following = words[place + 1] if place + 1 < size else None
        if _adverb(word, clause):
            pass
        elif text == ":":
            being = "be"
        elif text == "used_to":
            clause.former = not being and _FINITE.isdisjoint([later.text for later in words[place + 1 :]])
        elif text == "going_to" and clause.stopped:
            relation = "go"
            place += 1
            break
        elif text == "going_to":
            clause.plan, being = True, ""
        elif text in lx.MODALS:
            clause.plan = clause.plan or text == "will"
            must, expects = text == "must", True
        elif text in ("have", "has", "had") and not being and _participle(words, place + 1):
            clause.perfect = True
            clause.past = clause.past or text == "had"
        elif (
            text in ("do", "does", "did")
            and following
            and (following.stem in lx.VERBS or following.text in lx.NEGATIONS)
        ):
            clause.past = clause.past or text == "did"
            expects = True
        elif text in _GETS and not _participle(words, place + 1):
            relation, clause.past = "get", text == "got"
            place += 1
            break
        elif text in lx.BE or text in _GETS or text == "became":
            being, expects = "be", False
            clause.past = clause.past or text in lx.PAST_BE or text == "got"
            clause.change = clause.change or text in ("became", "become")
        elif word.kind == MARK:
            being = being or "be"
        elif text in lx.FILLERS:
            clause.yet = clause.yet or text == "finally"
        elif word.kind == WORD and (expects or _verbal(word, being)):
            skipped = _leads_on(words, place, clause)
            if skipped:
                being, place, expects = "", place + skipped, skipped > 1
                continue
            relation, being = _main_verb(word, being, clause), ""
            clause.passive = clause.passive or (
                clause.past and not clause.head and following is not None and following.text == "by"
            )
            place += 1
            break
        elif being and text in lx.PARTICLES and following and following.text in ("to", "from"):
            clause.change = True
        else:
            break
        place += 1
    if clause.perfect and (clause.passive or relation in lx.CHANGES or relation in lx.ENDS):
        clause.now = True
    if relation == "stand" and clause.negated:
        relation, clause.negated = "hate", False
    clause.relation = relation or being or "have"
    return place, must


def _mentions_new(head: Sequence[Word]) -> bool:
    """Whether the subject is a new number, address or boss."""
    return any(word.text == "new" for word in head) and any(word.stem in lx.ATTRIBUTES for word in head)


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
        return word.text in _SAME_PARTICIPLE
    if word.stem in lx.VERBS:
        return True
    return len(word.text) > 4 and word.text.endswith(("ing", "ed") if being else "ed")


def _leads_on(words: Sequence[Word], place: int, clause: Clause) -> int:
    """The number of words to skip if a verb only introduces another: "plans to move", "stopped smoking"."""
    stem = words[place].stem
    if stem in _PLANS or stem in _STOPS or stem in _STARTS:
        after = next((word for word in words[place + 1 : place + 3] if word.text not in lx.FILLERS), None)
        if after is None:
            return 0
        if stem in _PLANS and after.text in ("to", "not"):
            clause.plan = True
            clause.negated = clause.negated or after.text == "not"
            clause.change = clause.change or stem == "decid"
            return 3 if after.text == "not" else 2
        if stem in _STOPS and (after.text.endswith("ing") or after.text == "going_to"):
            clause.negated = clause.stopped = clause.now = True
            return 1
        if stem in _STARTS and after.text.endswith("ing"):
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


def _participle(words: Sequence[Word], place: int) -> bool:
    """Whether a participle or a state follows: "has moved", "got fixed"."""
    while place < len(words) and words[place].text in _SKIPPED:
        place += 1
    if place >= len(words) or words[place].kind != WORD:
        return False
    word = words[place]
    return (
        word.text.endswith("ed")
        or word.text in ("been", "become", "got")
        or word.text != word.base
        or word.text in lx.STATUS
    )
