"""Statements: what a later text replaces, contradicts, repeats or leaves alone."""

from __future__ import annotations

import os
import sys
from subprocess import run

from recallite.text.statements import (
    frames_of,
    keys_of,
    statement_of,
)


def test_hashes_are_the_same_in_every_process() -> None:
    code = (
        "from recallite.text.statements import *; s = statement_of('Dana lives in Oslo', None);"
        "print(keys_of(s), frames_of(s))"
    )
    printed = {
        run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    statement = statement_of("Dana lives in Oslo", None)
    assert printed == {f"{keys_of(statement)} {frames_of(statement)}\n"}
