"""Processes that answer tasks: in order, with the errors of their work, and ended by whatever ends them."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import pytest

from recallite.errors import WorkerLost
from recallite_bulk.jobs import Workers
from tests.limits import until
from tests.unit.test_errors import EVERY, as_told


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


ERRORS = {f"{number}": error for number, error in enumerate(EVERY)} | {"other": ZeroDivisionError("by zero")}


def doubling():
    return lambda task: 2 * task


def refusing():
    def call(task):
        raise ERRORS[task]

    return call


def raising():
    def call(task):
        raise Unpicklable("salt", task)

    return call


def dying(place):
    """Tells its process, waits until it is to die, and dies."""

    def call(task):
        (place / str(os.getpid())).touch()
        while not (place / "die").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    return call


def gone(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_results_come_in_the_order_of_the_tasks():
    with Workers(doubling, 2) as workers:
        assert list(workers.map(range(20))) == [2 * number for number in range(20)]
        assert list(workers.map(["a"])) == ["aa"]


def test_an_error_of_the_work_is_raised_and_the_process_goes_on():
    with Workers(refusing, 1) as workers:
        for name, error in ERRORS.items():
            with pytest.raises(type(error)) as caught:
                list(workers.map([name]))
            assert str(caught.value) == str(error)
            if name != "other":
                assert as_told(caught.value) == as_told(error)


def test_an_error_that_cannot_be_pickled_is_told_with_its_traceback():
    with Workers(raising, 1) as workers, pytest.raises(RuntimeError, match="Unpicklable: salt and pepper"):
        list(workers.map(["pepper"]))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_process_that_dies_while_tasks_are_sent_is_named(tmp_path):
    """Each task is longer than a pipe holds."""
    (tmp_path / "die").touch()
    with Workers(partial(dying, tmp_path), 2) as workers, pytest.raises(WorkerLost, match="was killed or ran out"):
        list(workers.map(bytes(4_000_000) for _ in range(8)))
    assert all(gone(int(each.name)) for each in tmp_path.iterdir() if each.name != "die")


def test_an_interruption_ends_processes_that_work(tmp_path):
    def interrupted():
        """Two tasks, and Ctrl-C when both are in work."""
        yield from (1, 2)
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Workers(partial(dying, tmp_path), 2) as workers:
        list(workers.map(interrupted()))
    assert all(gone(int(each.name)) for each in tmp_path.iterdir())
