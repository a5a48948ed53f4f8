"""A framework that is not installed is named with the command that installs it."""

from __future__ import annotations

import pytest

from recollect.integrations.extra import needs


def test_a_missing_framework_is_told_with_the_command_that_installs_it():
    with pytest.raises(ModuleNotFoundError, match="no_such_framework") as fault, needs("langgraph"):
        import no_such_framework  # noqa: F401
    assert fault.value.__notes__ == [
        "recollect.integrations needs it: pip install '.[langgraph]' in a checkout of Recollect"
    ]
