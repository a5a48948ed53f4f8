"""Two clauses compared: whether the newer one says that what the older one says has changed."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.statement import Ruling
from recallite.text.statements.value_changes import USES, another_value, does_again, is_in_use

TIES = frozenset(("singl", "marri", "engag", "divorc", "separ"))
COUPLED = frozenset(("date", "marri", "divorc", "separ"))
_PARTED = frozenset(("divorc", "separ", "singl"))
PARTNERS = lx.stems("girlfriend boyfriend wife husband spouse partner fiance fiancee")
_COUPLES = TIES | PARTNERS | {"date", "see"}
_LIKES = frozenset(("love", "like", "enjoy", "ador"))
_HATES = frozenset(("hate", "dislik", "detest", "loath"))
TASTES = _LIKES | _HATES
ANY_VERB = frozenset(("be", "get"))
_TELLING_STATE = lx.STATUS_STEMS.keys() | {"work"}
EXCHANGES = frozenset(("chang", "switch", "have", "get", "swap", "replac"))
_CALLED_OFF = lx.stems("cancel delete remove discontinue scrap sunset revoke terminate drop abandon")
_OFF = frozenset(("off", "cancel"))
_TOLD = _OFF | TIES
_TELLING = COUPLED | {"move", "engag"}
_ACQUIRES = lx.stems("get buy adopt install find hire build make have")
_KEEPS = lx.stems("have wear use need take own drive eat drink go be do work")
_GENERIC = frozenset(("go", "do", "use"))
_GIVES_UP = lx.stems("sell dump cancel lose")
_HOUSEHOLD = lx.stems("share live roommate flatmate housemate")
# What one does at a time: who leads the team now is its only leader.
_AGENTS = lx.stems("power handle manage lead run own maintain host coach teach drive chair organise organize moderate")
# What is done once.
_ONCE = lx.LASTING | lx.stems("win break cause steal delete lose propose")
STRIVES = lx.stems("study prepare save train look wait apply plan")
REACHES = lx.stems("pass buy get run finish receive find complete win take")
_DEADLINES = frozenset(("deadlin", "date", "time", "due", "i", "we"))
_PLAIN = frozenset(("be", "have"))
REPLACED, FORMER = "was replaced", "describes the past"
_LONGEST_TITLE = 3  # "CEO"
_NOTHING: frozenset[str] = frozenset()


def cannot_relate(new: Clause, old: Clause) -> bool:
    """Whether two clauses speak of different subjects or say different things of one, and the newer one tells of no
    change, end, role or couple, so that no rule relates them. A cheap pre-check: ten times faster than comparing.
    """
    if old.unreal or old.former or is_idle(new):
        return True
    if new.former:
        known = new.subject == old.subject and not (new.subject and new.subject <= lx.UNRESOLVED)
        return not known or new.relation != old.relation or new.stated != old.stated
    if tells(new):
        return False
    relation = new.relation
    if not new.subject.isdisjoint(old.subject):
        return new.negated == old.negated and not _have_comparable_verbs(new, old)
    if new.now and relation in USES and not new.subject.isdisjoint(old.stated):
        return False
    if old.relation == "be":
        if relation == "be":
            return new.stated != old.stated and new.subject != old.stated and old.subject != new.stated
        return relation not in EXCHANGES
    return relation != old.relation or new.stated != old.stated


def is_idle(new: Clause) -> bool:
    """Whether a newer clause only wishes or asks for something."""
    if new.unreal and not new.stopped:
        return True
    if not new.command or new.gone or new.now or new.corrected or new.former:
        return False
    stated = dict(new.chunks).get("", ())
    sets = new.change and new.relation == "be" and stated  # a command that gives a value: "set max tokens to 8192"
    return not (sets and all(word.kind in (lx.NUMBER, lx.IDENTIFIER) for word in stated))


def tells(new: Clause) -> bool:
    """Whether a newer clause tells of a change, an end or a couple, whatever an older one speaks of."""
    relation = new.relation
    if new.gone or new.ends or new.stopped or new.change or relation in _TELLING:
        return True
    return relation in ANY_VERB and not (_TOLD.isdisjoint(new.stated) and PARTNERS.isdisjoint(new.subject))


def _have_comparable_verbs(new: Clause, old: Clause) -> bool:
    """Whether a rule may compare two clauses by their verbs, given that both are negated or neither is."""
    one, other = new.relation, old.relation
    return (
        one == other
        or one in ANY_VERB
        or other in ANY_VERB
        or matches_any(new)
        or (one in USES and other in USES)
        or (one in TASTES and other in TASTES)
        or (one in REACHES and other in STRIVES)
    )


def matches_any(new: Clause) -> bool:
    """Whether the verb of a newer clause may tell of any other: "was sold", "reopened", "retired"."""
    return new.passive or new.relation.startswith("re") or new.relation in _TELLING_STATE


class _Pair(NamedTuple):
    """Two clauses, and what the rules ask of them.

    - `subject`: whether they speak of the same
    - `cue`: whether the newer text says that something changed
    - `lasting`: whether the older one is of a state or a plan, not of an event
    - `stated`: what the older one says of its subject, with its verb; `every`: also with its subject and times, made
      only if a rule about ends and changes may ask for it
    """

    new: Clause
    old: Clause
    subject: bool
    cue: bool
    lasting: bool
    stated: frozenset[str]
    every: frozenset[str]


def compare(
    new: Clause, old: Clause, several: frozenset[str], changed: bool, mentioned: frozenset[str]
) -> Ruling | None:
    """The finding of the rules on two clauses that are not `apart`; None if both may hold.

    `changed`: whether another clause of the newer text tells of change; `mentioned`: all that this text names.
    """
    if new.former:
        return None if old.past or old.negated or new.negated else Ruling("supersedes", FORMER, cued=True)
    stated = old.stated if old.relation in _PLAIN else old.stated | {old.relation}
    cue = new.now or new.change or new.corrected or changed or does_again(new, old)
    ending = new.gone or new.ends or new.stopped or new.change or new.relation == "move"
    ending = ending or (new.relation == "be" and not _OFF.isdisjoint(new.stated))
    pair = _Pair(
        new,
        old,
        subject=_same_subject(new, old, cue),
        cue=cue,
        lasting=not old.past or old.plan,
        stated=stated,
        every=old.every | stated | old.subject if ending else _NOTHING,
    )
    finding = _gone(pair) or _ended(pair) or couple(new, old, cue)
    if finding is not None:
        return finding
    if new.negated != old.negated:
        return _negation(pair) if pair.subject else None
    if pair.subject:
        return (
            _taste(pair)
            or _done(pair)
            or _exchanged(pair)
            or (_rescheduled(pair) if new.relation == "be" else None)
            or another_value(new, old, several, mentioned, pair.cue)
        )
    finding = _exchanged(pair) or _rescheduled(pair) or _role(pair) or _agent(pair)
    return finding or (_served(pair, several, mentioned) if cue else None)


def _covers(some: frozenset[str], more: frozenset[str]) -> bool:
    """Whether each stem is, or is akin to, one of `more`: "teach" and "teacher"."""

    def akin(one: str, other: str) -> bool:
        short, long = (one, other) if len(one) <= len(other) else (other, one)
        return len(short) > 3 and len(long) - len(short) < 4 and long.startswith(short)

    return all(stem in more or any(akin(stem, other) for other in more) for stem in some)


def _same_subject(new: Clause, old: Clause, cue: bool) -> bool:
    one, other = new.subject, old.subject
    if one == other:
        return bool(one) and not (len(one) == 1 and one <= lx.UNRESOLVED)
    if not one or not other or not (one < other or other < one):
        return False
    shared = one & other
    if shared <= lx.SPEAKERS or shared <= lx.UNRESOLVED:
        return False
    if cue and _names_in_fewer_words(new, old, shared, one ^ other):
        return True
    # "The dentist appointment", "my dentist appointment"; "the feature flag new_checkout", "new_checkout".
    return one ^ other <= {"i", "topic"} or any(
        word.kind == lx.IDENTIFIER and word.key in shared for word in (*new.head, *old.head)
    )


def _names_in_fewer_words(new: Clause, old: Clause, shared: frozenset[str], more: frozenset[str]) -> bool:
    """Whether one names the same thing in fewer words: "my go-to coffee order", "my go-to order"."""
    if len(shared - lx.SPEAKERS) < 2 and not (shared & lx.SPEAKERS and shared & lx.ATTRIBUTES):
        return False
    longer = new.head if len(new.subject) > len(old.subject) else old.head
    added = [word for word in longer if word.key in more]
    return not any(word.kind != lx.WORD or word.text in lx.DISTINCT or word.stem in lx.SEVERAL_NOUNS for word in added)


def _gone(pair: _Pair) -> Ruling | None:
    """A value named as gone, which the older one says: "switched from A to B", "B instead of A"."""
    new, old = pair.new, pair.old
    if not new.gone or old.negated or not (pair.lasting or (new.replaces and old.change)):
        return None
    gone = frozenset([word.key for word in new.gone])
    if new.replaces:
        return Ruling("supersedes", REPLACED, cued=True) if is_in_use(gone, new, old) else None
    if not _covers(gone, pair.every):
        return None
    about = new.subject - lx.SPEAKERS
    named = about | (new.every - lx.SPEAKERS) | (frozenset((new.relation,)) - _PLAIN)
    if pair.subject or (about and about <= pair.every) or named & pair.every or old.stated <= gone:
        return Ruling("supersedes", "names what held before", cued=True)
    return None


def _ended(pair: _Pair) -> Ruling | None:
    """An end: "quit", "sold", "cancelled", where the older one says what ended."""
    new, old = pair.new, pair.old
    if old.negated or not pair.lasting:
        return None
    planned = old.plan or "time" in dict(old.chunks) or old.relation == "plan"
    if new.relation == "be" and new.stated & _OFF and planned:
        about = new.subject - {"i"}
        return Ruling("supersedes", "was called off", cued=True) if about and about <= pair.every else None
    about = new.subject - lx.SPEAKERS
    stopped = new.stopped and not new.passive and about and new.stated
    if stopped and not pair.subject and about | new.stated <= pair.every:
        return Ruling("supersedes", "no longer holds", cued=True)
    if new.relation == "move" and "out" in new.stated and about and about <= pair.every and pair.every & _HOUSEHOLD:
        return Ruling("supersedes", "has ended", cued=True)
    if not new.ends:
        return None
    called_off = new.relation in _CALLED_OFF
    if new.passive or not new.stated:
        ended = new.subject - {"i"}
        if called_off and ended and not ended <= lx.SPEAKERS and ended <= pair.every:
            return Ruling("supersedes", "was called off", cued=True)
        if pair.subject and not new.stated and _covers(frozenset((new.relation,)), pair.stated):
            return Ruling("supersedes", "has ended", cued=True)
        return None
    ended = new.stated - {"i"}
    about = old.subject - lx.SPEAKERS
    owned = new.relation in _GIVES_UP and new.subject <= lx.SPEAKERS and ended and about and old.relation in _PLAIN
    if owned and (about <= ended or (ended <= about and about - ended <= lx.ATTRIBUTES)):
        return Ruling("supersedes", "has ended", cued=True)
    if ended and ((pair.subject and _covers(ended, pair.stated)) or (called_off and ended <= pair.every)):
        return Ruling("supersedes", "has ended", cued=True)
    return None


def _negation(pair: _Pair) -> Ruling | None:
    """One says the opposite of the other."""
    new, old = pair.new, pair.old
    ours, theirs = (new, old) if new.negated else (old, new)
    stated = ours.stated if ours.relation in _PLAIN else ours.stated | {ours.relation}
    if old.negated and old.relation == "have" and new.relation in _ACQUIRES and old.stated and old.stated <= new.stated:
        return Ruling("supersedes", "holds now", cued=True)
    keeps = new.relation in _KEEPS and (old.relation in _KEEPS or new.relation in _GENERIC)
    if new.stopped and pair.lasting and keeps and ours.stated and ours.stated <= old.stated:
        return Ruling("supersedes", "no longer holds", cued=True)
    if not stated or not _covers(stated, theirs.stated | {theirs.relation}):
        return None
    if new.negated and pair.lasting and (new.stopped or (new.change and new.plan) or new.corrected):
        return Ruling("supersedes", "no longer holds", cued=True)
    event = new.past and not new.perfect and not new.now and not old.yet
    if old.negated and pair.lasting and (pair.cue or new.yet or old.yet) and not event:
        return Ruling("supersedes", "holds now", cued=True)
    if len(theirs.stated - stated) <= 1 and new.past == old.past:
        return Ruling("contradicts", "negation", cued=False)
    return None


def _taste(pair: _Pair) -> Ruling | None:
    """Opposite tastes: "loves it", "hates it"."""
    new, old = pair.new, pair.old
    if new.stated != old.stated or not {new.relation, old.relation} <= TASTES:
        return None
    if (new.relation in _LIKES) == (old.relation in _LIKES):
        return None
    return Ruling("supersedes" if pair.cue else "contradicts", "the opposite", cued=pair.cue)


def _done(pair: _Pair) -> Ruling | None:
    """A plan that is done: "plans to apply", "applied"."""
    new, old = pair.new, pair.old
    for role, words in old.chunks if old.relation in STRIVES and new.relation in REACHES and new.past else ():
        if role == "for" and new.stated.issuperset([word.key for word in words]):
            return Ruling("supersedes", "was planned, is done", cued=True)
    done = old.plan and not new.plan and (new.past or new.perfect or new.ends) and new.relation == old.relation
    if done and old.stated and old.stated <= new.stated | {new.relation}:
        return Ruling("supersedes", "was planned, is done", cued=True)
    return None


def _exchanged(pair: _Pair) -> Ruling | None:
    """Another one: "I changed jobs", "I have a new landlord", where the older one says which it was."""
    new, old = pair.new, pair.old
    if new.relation not in EXCHANGES or old.relation != "be" or not pair.lasting or new.negated or len(new.chunks) != 1:
        return None
    about = old.subject - lx.SPEAKERS
    exchanged = new.stated - {"new", "i"}
    if not new.subject & lx.SPEAKERS or not ("new" in new.stated or new.relation in lx.CHANGES):
        return None
    if exchanged and about and _covers(about, exchanged) and ("new" in new.stated or _covers(exchanged, about)):
        return Ruling("supersedes", "was exchanged", cued=True)
    return None


def _rescheduled(pair: _Pair) -> Ruling | None:
    """Another time or number for something that the older clause mentions, but does not have as its subject.

    "The demo was moved to Friday" replaces "we show the bank the demo on Monday": the subject of the change is among
    the older words, and both have a value of the same kind, but not the same value.
    """
    new, old = pair.new, pair.old
    about = new.subject - _DEADLINES
    if not new.change or not pair.lasting or not about or not about <= pair.every:
        return None
    kinds = {word.kind for _, words in new.chunks for word in words if word.kind in lx.TYPED and word.text != "today"}
    theirs = [word.key for _, words in old.chunks for word in words if word.kind in kinds]
    if theirs and new.every.isdisjoint(theirs):
        return Ruling("supersedes", "another value", cued=True)
    return None


def _role(pair: _Pair) -> Ruling | None:
    """Another holder of a role: "Karen is my boss", "my boss is Ahmed", "Ahmed is my boss"."""
    new, old = pair.new, pair.old
    if new.relation != "be" or old.relation != "be" or new.past or old.past or new.negated or old.negated:
        return None
    if new.stated and new.stated == old.stated:
        # Many things can be in one place, so a new one replaces nothing.
        placed = any(role for role, _ in (*new.chunks, *old.chunks))
        if placed or not (new.definite or old.definite) or new.stated & lx.SEVERAL_NOUNS:
            return None
        named = all(word.kind == lx.NAME or word.text in lx.NOW for word in (*new.head, *old.head))
        numbered = len(new.subject ^ old.subject) == 2 and len(new.subject & old.subject) == 1
        return Ruling("supersedes", "another one", cued=pair.cue) if named or numbered else None
    for role, holder, other in ((new.subject, new.stated, old), (old.subject, old.stated, new)):
        sole = (role & lx.ATTRIBUTES and not _is_in_a_name(role, new, old)) or (
            pair.cue and role & lx.SPEAKERS and not role & lx.SEVERAL_NOUNS
        )
        if role == other.stated and sole and holder and holder != other.subject:
            return Ruling("supersedes", "another one", cued=pair.cue)
    return None


def _is_in_a_name(role: frozenset[str], new: Clause, old: Clause) -> bool:
    """Whether a role is a part of a name in both clauses: "the University of Coimbra"."""
    every = ((*clause.head, *(word for _, words in clause.chunks for word in words)) for clause in (new, old))
    titles = role & lx.ATTRIBUTES
    kinds = [{word.kind for word in words if word.key in titles and len(word.text) > _LONGEST_TITLE} for words in every]
    return kinds == [{lx.NAME}, {lx.NAME}] and len(role) > 1


def _served(pair: _Pair, several: frozenset[str], mentioned: frozenset[str]) -> Ruling | None:
    """Another means of the same purpose: "we use A for CI", "CI runs on B now"."""
    new, old = pair.new, pair.old
    if new.relation not in USES or old.relation not in USES or not (pair.lasting or old.change):
        return None
    for one, other in ((new, old), (old, new)):
        words = dict(other.chunks).get("for", ()) if other.subject <= lx.SPEAKERS else ()
        purpose = frozenset([word.key for word in words])
        if one.subject != purpose:
            continue
        chunks = tuple([chunk for chunk in other.chunks if chunk[0] != "for"])
        stated, every = other.stated - purpose, other.every - purpose
        # The same as said of the purpose: "CI runs on A".
        turned = replace(other, subject=purpose, chunks=chunks, stated=stated, every=every, past=False)
        ours, theirs = (new, turned) if other is old else (turned, old)
        return another_value(ours, theirs, several, mentioned, pair.cue)
    return None


def _agent(pair: _Pair) -> Ruling | None:
    """Another agent: "Carol runs the shop", "Sam runs the shop now"."""
    new, old = pair.new, pair.old
    if new.relation != old.relation or new.stated != old.stated or not new.stated or not new.definite:
        return None
    if pair.cue and new.relation in _AGENTS and not new.past and not old.past:
        return Ruling("supersedes", "another one", cued=True)
    if new.past and old.past and new.relation in _ONCE and new.every == old.every:
        return Ruling("contradicts", "another one", cued=False)
    return None


# Couples: who is single, engaged, married or separated.


def couple(new: Clause, old: Clause, cue: bool) -> Ruling | None:
    """Compare who is single, engaged, married or separated: both partners count as the subject."""
    ours = _ties(new)
    theirs = _ties(old) if ours else ours
    if not ours or not theirs or new.negated or old.negated or old.past or old.rest:
        return None
    people, others = new.subject | _partners(new), old.subject - _COUPLES | _partners(old)
    if not (new.subject & others or old.subject & people) or not (new.subject == old.subject or others <= people):
        return None
    if theirs <= PARTNERS and ours.isdisjoint(_PARTED):
        return None
    if ours & theirs and people == others:
        return None
    return Ruling("supersedes", "another relationship", cued=cue or new.past)


def _partners(clause: Clause) -> frozenset[str]:
    words = [word for role, some in clause.chunks if role in ("", "to", "with") for word in some]
    return frozenset([word.key for word in words if word.kind == lx.NAME or word.text == "i"])


def _ties(clause: Clause) -> frozenset[str]:
    if len(clause.stated) > 4:
        return frozenset()
    if clause.relation in COUPLED or (clause.relation == "engag" and clause.passive):
        return frozenset((clause.relation,))
    if clause.relation == "be" and clause.subject & PARTNERS:
        return clause.subject & PARTNERS
    return clause.stated & TIES if clause.relation in ("be", "get") else frozenset()
