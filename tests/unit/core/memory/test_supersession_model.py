"""Seeded steps that supersede, undo, change and forget leave the store equal to a model of it, now and in the past."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.checks import now_us, to_datetime
from recallite.model.records import NewRecord, Record
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.supersession_model import NEVER, Model, Statement
from tests.unit.core.memory.support import PLAIN

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 40
STEPS = 20


def on(day: int) -> datetime:
    return FIRST_DAY + timedelta(days=day)


class Steps:
    """A store and its model, which take the same steps."""

    def __init__(self, memory: Memory, draws: random.Random) -> None:
        self.memory, self.draws, self.model = memory, draws, Model()
        self.moments = [now_us()]

    def take(self) -> None:
        """One step, done by both or refused by both."""
        model, draws = self.model, self.draws
        model.step += 1
        names = sorted(model.records)
        verb = draws.choices(["remember", "replace", "supersede", "restore", "update", "forget"], [5, 4, 6, 3, 2, 1])[0]
        if len(names) < 3 or verb == "remember":
            self.remember([])
        elif verb == "replace":
            self.remember([draws.choice(names)])
        elif verb == "supersede":
            olds, news = ([*draws.sample(names, draws.choice([1, 1, 1, 2]))] for _ in range(2))
            at = draws.choice([None, None, draws.randrange(DAYS)])
            self.both(
                lambda: model.supersede(olds, news, at),
                lambda: self.memory.supersede(olds, news, at=None if at is None else on(at)),
            )
        else:
            name = draws.choice(names)
            match verb:
                case "restore":
                    self.both(lambda: model.restore(name), lambda: self.memory.restore(name))
                case "update":
                    self.memory.update(name, text=f"statement, as changed in step {model.step}")
                case "forget":
                    model.forget(name)
                    self.memory.forget(name)
        self.moments.append(now_us())

    def remember(self, olds: list[str]) -> None:
        begins = self.draws.randrange(DAYS)
        ends = self.draws.choice([NEVER, NEVER, begins + 1 + self.draws.randrange(DAYS)])
        made: list[str] = []

        def store() -> None:
            until = None if ends == NEVER else on(ends)
            text = f"statement {self.model.step}"
            made.append(
                self.memory.remember(NewRecord(text, valid_from=on(begins), valid_until=until, supersedes=olds)).id
            )

        def add() -> None:
            self.model.records["new"] = Statement(begins, ends, self.model.step)
            try:
                self.model.supersede(olds, ["new"])
            except ValueError:
                del self.model.records["new"]
                raise

        if self.both(add, store):
            self.model.records[made[0]] = self.model.records.pop("new")
            for edge in self.model.edges:
                edge.new = made[0] if edge.new == "new" else edge.new

    def both(self, expected, done) -> bool:
        try:
            expected()
        except ValueError:
            with pytest.raises(InvalidInput):
                done()
            return False
        done()
        return True

    def check(self, memory: Memory) -> None:
        """Every read agrees with the model: list and count by SQL, recall by the index."""
        model, draws = self.model, self.draws
        past = draws.randrange(len(self.moments))
        day = draws.randrange(2 * DAYS)
        as_of = to_datetime(self.moments[past])
        for step, fields in ((model.step, {}), (past, {"as_of": as_of})):
            agree(memory, model.visible(step), fields, recalled=None if fields else {*model.records})
            agree(memory, model.visible(step, day), {**fields, "valid_at": on(day)})
        agree(memory, {*model.records}, {"include_superseded": True})


def agree(memory: Memory, expected: set[str], fields: dict, recalled: set[str] | None = None) -> None:
    """Recall shows what holds no longer too, if it is not asked for a time."""
    assert {each.id for each in memory.list(limit=None, **fields)} == expected, fields
    assert memory.count(**fields) == len(expected), fields
    hits = memory.recall("statement", limit=1_000, **recall_arguments(fields))
    assert {hit.id for hit in hits} == (expected if recalled is None else recalled), fields


@pytest.mark.parametrize("seed", range(6))
def test_the_store_equals_a_model_after_every_step(seed, tmp_path):
    """A second handle sees the same by the changes it reads, and a third by loading the whole."""
    path = tmp_path / "agent.db"
    with Memory(path, settings=PLAIN) as memory, Memory(path, settings=PLAIN) as other:
        steps = Steps(memory, random.Random(seed))
        for _ in range(STEPS):
            steps.take()
            steps.check(memory)
            steps.check(other)
        assert memory.store.verify().problems == ()
        memory.transfer.export(tmp_path / "all.jsonl")
        with Memory(":memory:", settings=PLAIN) as copy:
            copy.transfer.import_(tmp_path / "all.jsonl")
            steps.check(copy)
            copy.store.rebuild()
            steps.check(copy)
            assert copy.transfer.import_(tmp_path / "all.jsonl").records == 0
            assert sorted(map(shown, memory.list(include_superseded=True, limit=None))) == sorted(
                map(shown, copy.list(include_superseded=True, limit=None))
            )
    with Memory(path, settings=PLAIN) as again:
        steps.check(again)


def shown(record: Record) -> str:
    return structs.replace(record, accessed_at=None, access_count=0).to_json()
