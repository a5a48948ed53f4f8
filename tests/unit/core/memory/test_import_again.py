"""An import of lines without ids that is run again, and lines whose time is to come."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory, Settings

PLAIN = Settings(embedder="none")
LINES = [json.dumps({"text": f"The crate {number} has {number * 7} bolts", "tags": ["crate"]}) for number in range(40)]


@pytest.fixture
def memory():
    with Memory(":memory:", settings=PLAIN) as opened:
        yield opened


def stream(lines):
    return io.StringIO("".join(f"{line}\n" for line in lines))


def test_an_import_that_was_stopped_is_finished_by_the_next(memory):
    def stop(done, _):
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.transfer.import_(stream(LINES), batch_size=8, on_progress=stop)
    assert memory.count() == 16
    done = memory.transfer.import_(stream(LINES), batch_size=8)
    assert (done.records, done.skipped, memory.count()) == (24, 16, 40)


@pytest.mark.parametrize(("format", "text"), [("text", "one thing\nanother\n"), ("csv", "text,topic\none,a\ntwo,b\n")])
def test_lines_of_every_format_have_ids_of_their_content(memory, format, text):
    first = memory.transfer.import_(io.StringIO(text), format=format)
    again = memory.transfer.import_(io.StringIO(text), format=format)
    assert (first.records, again.records, again.skipped) == (2, 0, 2)
    other = memory.transfer.import_(io.StringIO(text), format=format, scope="/elsewhere")
    assert other.records == 2


def test_a_time_that_is_to_come_is_taken_as_now_and_told(memory):
    later = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    lines = ['{"text": "the first line"}', json.dumps({"text": "from a wrong clock", "created_at": later}), LINES[0]]
    done = memory.transfer.import_(stream(lines))
    assert (done.records, done.warnings_total) == (3, 1)
    assert done.warnings == (f"line 2: created_at is {later}, which is to come: taken as now",)
    assert all(record.created_at <= datetime.now(UTC) for record in memory.list())
    assert memory.transfer.import_(stream(lines)).skipped == 3
