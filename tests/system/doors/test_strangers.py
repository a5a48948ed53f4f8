"""Files that a stranger has put into a folder are never run as code, whatever is started in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recallite.system.processes import safe_environment
from recallite_server.warm import asking
from recallite_server.warm.quick import command, module, quick_start
from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.doors.warming import fill, running

# Modules that Python, the full command, the resident process or multiprocessing import.
PLANTED = ("recallite", "recallite/doors", "recallite_server", "recallite_server/warm", "multiprocessing", "click",
           "msgspec", "random", "tempfile", "subprocess", "sitecustomize", "recallite_kernels")  # fmt: skip


def plant(folder):
    """Put modules into a folder that leave a file beside it when they are run; returns whether any was."""
    mark = folder.parent / "ran"
    for name in PLANTED:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for module_file in ("__init__.py", "__main__.py"):
            (folder / name / module_file).write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit(1)\n")
    return mark.exists


def ask_hook(start, folder, path):
    payload = json.dumps({"session_id": "s", "cwd": str(folder), "prompt": "Which host is the staging host?"}).encode()
    return subprocess.run(
        [*start, "--db", str(path), "hook", "prompt", "--patience", str(LAST_RESORT_SECONDS)], input=payload,
        cwd=folder, capture_output=True, timeout=LAST_RESORT_SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize("python_path", ["", f"{os.pathsep}/nowhere", f".{os.pathsep}/nowhere"])
def test_a_hook_runs_nothing_of_the_project(tmp_path, monkeypatch, python_path):
    monkeypatch.setenv("RECALLITE_WARM", "0")
    monkeypatch.setenv("PYTHONPATH", python_path)
    project = tmp_path / "project"
    project.mkdir()
    was_run = plant(project)
    ran = ask_hook(quick_start(), project, tmp_path / "agent.db")
    assert (ran.returncode, ran.stderr, was_run()) == (0, b"", False)
    assert (tmp_path / "agent.db").exists()  # the full command has answered


@pytest.mark.skipif(sys.platform == "win32", reason="nobody else can enter a profile there")
@pytest.mark.parametrize("kind", ["open to all", "a link"])
def test_a_folder_of_sockets_that_others_can_enter_is_not_used(warm, tmp_path, monkeypatch, kind):
    folder = Path(asking.folder())
    planted = tmp_path / "planted" if kind == "a link" else folder
    planted.mkdir(mode=0o700)
    was_run = plant(planted)
    if kind == "a link":
        folder.symlink_to(planted)
    else:
        folder.chmod(0o777)
    project = tmp_path / "project"
    project.mkdir()
    assert ask_hook(quick_start(), project, warm.path).returncode == 0
    with pytest.raises(asking.Unanswered, match="only this user may enter"):
        asking.start(LAST_RESORT_SECONDS)
    assert not warm.command("recall", "office").light
    assert not was_run()
    assert not list(folder.glob("*.log"))


def test_the_resident_process_runs_nothing_of_its_own_folder(warm):
    fill(warm.path)
    os.makedirs(asking.folder(), mode=0o700)
    was_run = plant(Path(asking.folder()))
    warm.start()
    until(lambda: bool(running()))
    assert warm.command("recall", "office").light
    assert not was_run()


def test_processes_for_bulk_work_run_nothing_of_the_current_folder(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    was_run = plant(project)
    script = tmp_path / "scripts" / "work.py"
    script.parent.mkdir()
    script.write_text(
        "from recallite_bulk.jobs import Workers\n"
        "def make():\n    return abs\n"
        "if __name__ == '__main__':\n"
        "    with Workers(make, 2) as workers:\n        print([*workers.map([-1, -2, -3])])\n"
    )
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=project, capture_output=True, timeout=LAST_RESORT_SECONDS, encoding="utf-8"
    )
    assert (ran.stdout, ran.stderr, was_run()) == ("[1, 2, 3]\n", "", False)


def test_packages_of_the_user_are_still_found(tmp_path, monkeypatch):
    absolute = tmp_path / "mine"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", str(absolute), "relative"]))
    assert safe_environment()["PYTHONPATH"] == str(absolute)
    monkeypatch.setenv("PYTHONPATH", "")
    assert "PYTHONPATH" not in safe_environment()
    shown = subprocess.run(
        [*module("site")[:2], "-c", "import site; print(site.ENABLE_USER_SITE)"], capture_output=True, encoding="utf-8",
    )  # fmt: skip
    direct = subprocess.run(
        [sys.executable, "-c", "import site; print(site.ENABLE_USER_SITE)"], capture_output=True, encoding="utf-8"
    )
    assert shown.stdout == direct.stdout
    assert command(["stats"])[-1] == "stats"
