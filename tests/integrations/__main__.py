"""python -m tests.integrations [NAME ...] [--sources DIR] [--save]: each integration with the real package.

Every framework gets a virtual environment of its own, since some pin each other's dependencies: Recollect with the
extra and the newest version that it allows. There our tests run, the page's examples, and the framework's own tests
with our store in the place of theirs. Needs uv and network.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks import saving
from tests.integrations.frameworks import FRAMEWORKS, Framework, Theirs
from tests.integrations.left_out import LEFT_OUT
from tests.integrations.results import markdown

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "integrations.json"
_PYTEST = ("pytest>=8.3,<10", "pytest-asyncio>=0.24", "pytest-timeout")
_LIMIT_S = 600


def main() -> int:
    """Run what was asked for, print the matrix; 1 if a test failed."""
    options = _arguments()
    names = options.names or [name for name, each in FRAMEWORKS.items() if _test_file(each).exists()]
    if unknown := sorted(set(names) - set(FRAMEWORKS)):
        print(f"no such integration: {', '.join(unknown)}; there are {', '.join(FRAMEWORKS)}", file=sys.stderr)
        return 2
    run: dict[str, Any] = {}
    failed = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                run[name] = _tried(name, Path(folder), options.sources)
            except subprocess.CalledProcessError as fault:
                print(f"{name}: {' '.join(map(str, fault.cmd[:6]))} ended with {fault.returncode}", flush=True)
                failed.append(name)
                continue
        if any(each and each["failed"] + each["errors"] for each in (run[name]["ours"], run[name].get("theirs"))):
            failed.append(name)
        if options.save:
            saving.write(saving.read(RESULTS) | run, RESULTS)
    if run:
        print(markdown(run))
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


def _test_file(framework: Framework) -> Path:
    return ROOT / "tests" / "integrations" / f"test_{framework.module}.py"


def _tried(name: str, work: Path, sources: Path | None) -> dict[str, Any]:
    """The version and the counts of one framework."""
    framework = FRAMEWORKS[name]
    print(f"\n== {name}", flush=True)
    python = _environment(framework, work)
    version = _version(python, framework.package)
    ours = [str(_test_file(framework)), "tests/docs/test_snippets.py", "tests/docs/test_examples.py"]
    ours += ["-k", f"test_{framework.module} or {name}.md or {framework.module}_agent"]
    found: dict[str, Any] = {
        "version": version, "python": platform.python_version(), "date": f"{datetime.date.today()}",
        "ours": _pytest(python, [*ours, "-o", "asyncio_mode=auto"], work / "ours.xml", ROOT),
    }  # fmt: skip
    for theirs in framework.theirs:
        folder = _sources(theirs, version, work, sources)
        if folder is None:
            print(f"{name}: no sources of {theirs.repository} were found, so its tests did not run")
            continue
        counts = _theirs(python, framework, theirs, folder, work)
        found["theirs"] = (
            counts if "theirs" not in found else {key: counts[key] + found["theirs"][key] for key in counts}
        )
    return found


def _environment(framework: Framework, work: Path) -> Path:
    """A virtual environment with Recollect, the framework and pytest; returns its Python."""
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, work / "venv"], check=True)
    python = work / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    needs = [each for theirs in framework.theirs for each in theirs.needs]
    ours = f"{ROOT}[{framework.extra}]" if framework.extra else str(ROOT)
    command = ["uv", "pip", "install", "--quiet", "--python", python, "--editable", ours]
    subprocess.run([*command, *_PYTEST, "hypothesis", "markdown-it-py", *framework.needs, *needs], check=True)
    return python


def _version(python: Path, package: str | None) -> str:
    if package is None:
        return ""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def _sources(theirs: Theirs, version: str, work: Path, sources: Path | None) -> Path | None:
    """A folder with the framework's tests: a checkout in `sources`, the source distribution, or a fresh checkout."""
    kept = None if sources is None else sources / theirs.repository.replace("/", "+")
    if kept is not None and kept.is_dir():
        return kept / theirs.within
    folder = work / "sources" / (theirs.sdist or theirs.repository).partition("=")[0].replace("/", "+")
    folder.mkdir(parents=True, exist_ok=True)
    if theirs.sdist is not None:
        wanted = theirs.sdist.format(version=version)
        # `:all:` would make pip compile what the package is built with, which took minutes.
        package = wanted.partition("==")[0]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
        subprocess.run([*command, "--dest", folder, wanted], check=True)
        # Before Python 3.11.4 there is no filter.
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, **safely)
        return next(each for each in folder.iterdir() if each.is_dir())
    address, tag = f"https://github.com/{theirs.repository}", theirs.tag.format(version=version)
    done = subprocess.run(["git", "clone", "--quiet", "--depth", "1", "--branch", tag, address, folder])
    return folder / theirs.within if done.returncode == 0 else None


def _theirs(python: Path, framework: Framework, theirs: Theirs, folder: Path, work: Path) -> dict[str, int]:
    """The counts of a framework's own tests."""
    paths = [str(folder / path) for path in theirs.paths]
    plugin = f"tests.integrations.theirs.{framework.module}"
    options = ["-p", plugin, "-p", "tests.integrations.left_out", "--rootdir", str(folder), "-c", os.devnull]
    left_out = {LEFT_OUT: json.dumps(dict(theirs.left_out))}
    return _pytest(python, [*options, "-o", "asyncio_mode=auto", *paths], work / "theirs.xml", folder, left_out)


def _pytest(
    python: Path, arguments: list[str], report: Path, folder: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> dict[str, int]:
    """Run pytest; how many tests passed, failed, did not run, and were left out."""
    paths = os.pathsep.join([str(ROOT), str(folder)])  # in this order: `tests` is ours, see left_out.py
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [
        python,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
        f"--timeout={_LIMIT_S}",
        *arguments,
    ]
    subprocess.run(command, cwd=folder, env=environment)
    counts = dict.fromkeys(("passed", "failed", "errors", "skipped", "left_out"), 0)
    if not report.exists():
        return {**counts, "errors": 1}
    for case in ET.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            counts["left_out" if "left out: " in (skipped.get("message") or "") else "skipped"] += 1
        elif case.find("error") is not None:
            counts["errors"] += 1
        else:
            counts["failed" if case.find("failure") is not None else "passed"] += 1
    return counts if counts["passed"] else {**counts, "errors": counts["errors"] + 1}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.integrations", description="The integrations, with real packages."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="integrations (all)")
    parser.add_argument(
        "--sources", type=Path, help="folder of checkouts, named OWNER+REPOSITORY, in place of downloads"
    )
    parser.add_argument("--save", action="store_true", help="save the results that the matrix of the docs shows")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
