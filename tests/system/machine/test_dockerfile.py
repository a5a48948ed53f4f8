"""The Dockerfile: what it copies is there and gets into its context, and what runs is confined."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from click.testing import CliRunner

from recallite_cli.run import app
from tests.container import ROOT, stages
from tests.limits import LAST_RESORT_SECONDS

BUILD, IMAGE = stages()
LAST = {step.name: step for step in IMAGE}


def test_what_is_copied_is_there_and_not_ignored():
    allowed = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert allowed[0] == "*"
    copied = [source for step in BUILD if step.name == "COPY" for source in step.words[:-1]]
    assert copied
    for source in copied:
        assert (ROOT / source).exists()
        assert f"!{source}" in allowed
    assert {name.removeprefix("!") for name in allowed[1:] if name.startswith("!")} == {*copied}


def test_every_image_has_a_version_and_the_one_of_both_stages_is_the_same():
    images = [step.words[0] for stage in (BUILD, IMAGE) for step in stage if step.name == "FROM"]
    assert len({*images}) == 1
    name, _, tag = images[0].partition(":")
    assert name == "python"
    assert tag[0].isdigit()


def test_what_runs_is_no_superuser_and_writes_to_the_volume_alone():
    names = [step.name for step in IMAGE]
    assert int(LAST["USER"].rest) > 0
    assert "USER" not in names[names.index("USER") + 1 :]
    assert not {"RUN", "COPY", "ADD"} & {*names[names.index("USER") :]}
    (volume,) = LAST["VOLUME"].words
    variables = dict(word.split("=", 1) for word in LAST["ENV"].words)
    assert variables["RECALLITE_DB"].startswith(f"{volume}/")
    assert variables["RECALLITE_CACHE_DIR"].startswith(f"{volume}/")
    assert LAST["WORKDIR"].rest == volume


def test_nothing_is_fetched_but_by_pip_and_nothing_when_it_runs():
    steps = [step for stage in (BUILD, IMAGE) for step in stage]
    assert not [step for step in steps if step.name == "ADD"]
    runs = " ".join(step.rest for step in steps if step.name == "RUN")
    assert not {"curl", "wget", "git", "apt-get"} & {*runs.split()}
    assert "--no-cache-dir" in runs


def test_its_command_is_one_of_ours_and_its_health_is_asked_where_it_listens():
    assert LAST["ENTRYPOINT"].words == ["recallite"]
    command, *options = LAST["CMD"].words
    ran = CliRunner().invoke(app, [command, "--help"])
    assert ran.exit_code == 0
    assert all(option in ran.output for option in options if option.startswith("--"))
    default_port = ran.output.partition("default: 7333")[1]
    assert default_port == f"default: {LAST['EXPOSE'].rest}"
    assert f":{LAST['EXPOSE'].rest}/healthz" in LAST["HEALTHCHECK"].rest.partition("CMD ")[2]


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_has_nothing_to_say():
    ran = subprocess.run(
        ["hadolint", str(ROOT / "Dockerfile")], capture_output=True, timeout=LAST_RESORT_SECONDS, encoding="utf-8"
    )
    assert ran.stdout == ""
