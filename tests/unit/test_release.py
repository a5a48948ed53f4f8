"""What has to hold before a release: .ci/release refuses the rest; its build needs package registries."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    script = ROOT / ".ci" / "release"
    if not script.exists():
        pytest.skip("the sdist has no .ci")
    for name, text in {
        "engine/recallite/_version.py": '__version__ = "1.2.3"\n',
        "README.md": "It remembers.\n",
        "CHANGELOG.md": "# Changelog\n\n## 1.2.3, 2027-01-31\n\n- All of it\n\n## 1.2.2, not released yet\n",
        "docs/limits.md": "Few. It lasts until 1.2.30 is out.\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / ".ci").mkdir()
    shutil.copy(script, tmp_path / ".ci")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "Files")
    return tmp_path


def refused(checkout: Path) -> str:
    """What the check prints; nothing if the checkout can be released."""
    run = subprocess.run([checkout / ".ci" / "release", "--check"], capture_output=True, text=True)
    assert bool(run.stderr) == bool(run.returncode)
    return run.stderr


def test_a_checkout_that_says_one_version_everywhere_is_released(checkout: Path) -> None:
    assert refused(checkout) == ""


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        (
            "CHANGELOG.md",
            "## 1.2.3, not released yet\n",
            "CHANGELOG.md: the first heading is '## 1.2.3, not released yet'",
        ),
        ("README.md", "It is Unreleased.\n", "README.md:1:It is Unreleased."),
        ("docs/limits.md", "Few.\n\nIt may change until 1.2.3 is out.\n", "docs/limits.md:3:It may change until"),
        ("engine/recallite/_version.py", '__version__ = "1.2.4"\n', "not '## 1.2.4, YEAR-MONTH-DAY'"),
        ("engine/recallite/_version.py", '__version__ = "1.2.3.dev0"\n', "1.2.3.dev0 is no version to release"),
    ],
)
def test_what_does_not_say_the_version_is_refused(checkout: Path, file: str, text: str, why: str) -> None:
    (checkout / file).write_text(text, "utf-8")
    git(checkout, "commit", "--quiet", "--all", "--message", "Change")
    assert why in refused(checkout)


def test_changes_that_are_not_committed_and_a_tag_that_exists_are_refused(checkout: Path) -> None:
    git(checkout, "tag", "v1.2.3")
    assert "v1.2.3 is tagged already" in refused(checkout)
    (checkout / "new.py").touch()
    assert "the work tree has changes" in refused(checkout)


def test_this_checkout_names_its_version_as_the_script_reads_it() -> None:
    stated = re.search(r'^__version__ = "(.+)"$', (ROOT / "engine/recallite/_version.py").read_text("utf-8"), re.M)
    assert stated is not None
    assert f"## {stated[1]}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_every_dependency_of_a_user_has_both_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].items()
    of_ours = {"dev", "docs", "models", "multilingual", "peers"}
    asked = [*project["dependencies"], *(line for name, lines in extras if name not in of_ours for line in lines)]
    bounded = re.compile(r"recallite\[.*|tzdata; .*|[\w.-]+(\[\w+\])?>=[\w.]+,<[\w.]+(; .*)?")
    assert [line for line in asked if not bounded.fullmatch(line)] == []
