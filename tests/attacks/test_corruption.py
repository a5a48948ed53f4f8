"""A few dozen damaged files of every kind."""

import random

from tests.attacks.attacks import ATTACKS
from tests.attacks.damage import spoil


def test_damaged_files_give_right_answers_or_errors_of_ours():
    outcome = ATTACKS["corruption"](50, 1)
    assert not outcome.failures, outcome.examples
    assert {"store", "journal", "snapshot", "workspace", "backup", "export", "default", "settings"} <= set(
        outcome.figures
    )
    assert outcome.figures["with a typed error"] > 5


def test_damage_changes_a_file(tmp_path):
    path, ways = tmp_path / "file", set()
    for seed in range(100):
        path.write_bytes(random.Random(0).randbytes(20_000))
        before = path.read_bytes()
        ways.add(spoil(path, random.Random(seed)).split(" at ")[0])
        assert path.read_bytes() != before or ways & {"swapped pages"}
    assert len(ways) == 8
