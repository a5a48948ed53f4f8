"""Values of a store: supersessions, repeated statements, and pairs that wait to be judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from recallite.store.rows import Moment


class Supersession(NamedTuple):
    """The open version `new_id` in the place of `old_id`; times in microseconds.

    `holds_from` is the valid time from which the new one holds, `known_from` and `known_until` say when the store knew
    of it: it stands while `known_until` is None.
    """

    old_id: int
    new_id: int
    holds_from: int
    known_from: int
    known_until: int | None = None
    reason: str | None = None
    strength: float = 1.0


class NamedSupersession(NamedTuple):
    """A supersession between public ids, as exports have it."""

    old: str
    new: str
    holds_from: Moment
    known_from: Moment
    known_until: Moment | None
    reason: str | None
    strength: float


def beginning(created_at: int, valid_from: int | None, *, resolved: bool) -> int:
    """The time when a statement begins to hold, to tell which of two holds later.

    A time that was found in the text counts as the moment at which it was told: "I moved to Bergen last month" replaces
    "I live in Oslo", told last week, and "The review moved to Thursday" what was told of next Friday.
    """
    return created_at if valid_from is None or resolved else valid_from


def telling(created_at: int, recorded_from: int, valid_from: int | None, *, resolved: bool) -> int:
    """The time as of which a version says what it does. What is to come was announced when it was told.

    A text that `update` gave was told when its version began, not when the memory was created.
    """
    told_at = max(created_at, recorded_from)
    return told_at if valid_from is None or resolved else min(valid_from, told_at)


class Standpoint(NamedTuple):
    """The fields that decide whether a record may take part in a supersession."""

    record_id: int
    public_id: str
    scope: str
    kind: str
    begins_at: int
    recorded_from: int
    expires_at: int | None
    pinned: bool
    authority: int


class FormerRow(NamedTuple):
    """A record that another has superseded, and the valid times between which it held."""

    public_id: str
    text: str
    held_from: Moment
    held_until: Moment


class Occurrence(NamedTuple):
    """A further time at which a statement was remembered; `text` where it differs from the record's."""

    at: Moment
    text: str | None


class Sought(NamedTuple):
    """Records are sought of exactly this scope and kind that share one of the keys, the first of which count most."""

    keys: Sequence[int]
    scope: str
    kind: str


class SoughtText(NamedTuple):
    """Records are sought of exactly this scope and kind whose text has this `text_key`."""

    key: bytes
    scope: str
    kind: str


class Uncompared(NamedTuple):
    """The records from `first_id` to `last_id` wait to be compared, as a policy in JSON says."""

    first_id: int
    last_id: int
    policy: str


class StatementCandidate(Struct, frozen=True, gc=False):
    """An open record, neither expired nor superseded, that a new statement may repeat, supersede or contradict."""

    record_id: int
    public_id: str
    text: str
    context: str | None
    content_hash: bytes
    topic: str | None
    source: str | None
    position: int | None
    pinned: bool
    authority: int
    created_at: int
    valid_from: int | None
    valid_until: int | None
    valid_resolved: bool
    expires_at: int | None
    recorded_from: int
    metadata: str | None
    tags: tuple[str, ...]
    # Further times at which it was remembered.
    repeated_at: tuple[int, ...]
    # The weight of the keys that it was found by; the first of those asked for weigh most.
    shared: int

    @property
    def begins_at(self) -> int:
        """The time when it begins to hold."""
        return beginning(self.created_at, self.valid_from, resolved=self.valid_resolved)


class Judgement(NamedTuple):
    """A pair of open records; the rules leave open whether the new one supersedes the old."""

    old_id: int
    new_id: int
    confidence: float
    reason: str
    created_at: int
