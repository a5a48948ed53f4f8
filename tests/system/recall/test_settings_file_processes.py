"""Settings from files, and what such files may not hold."""

from __future__ import annotations

from tests.unit.core.memory.support import run


def test_reading_settings_loads_only_the_parser_that_is_needed(tmp_path):
    (tmp_path / "a.toml").write_text("")
    code = (
        "import sys; from recallite import Settings; Settings.load(sys.argv[1]); "
        "print({'yaml', 'json5'} & set(sys.modules))"
    )
    assert run(code, tmp_path / "a.toml").strip() == "set()"
