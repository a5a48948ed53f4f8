"""Files made to harm their reader."""

from importlib.util import find_spec

import pytest

from tests.attacks.attacks import ATTACKS

_NEEDED = ("pypdfium2", "mammoth", "selectolax", "html_to_markdown", "resource")
_MISSING = [name for name in _NEEDED if find_spec(name) is None]


@pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}")
def test_hostile_files_harm_only_themselves():
    outcome = ATTACKS["hostile files"](20, 3)
    assert not outcome.failures, outcome.examples
    assert outcome.figures["refused"] > 2
    assert outcome.figures["read"] > 2
