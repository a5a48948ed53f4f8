"""python -m tests.system.integrations [NAME ...] [--ours] [--sources DIR] [--save]: each integration with its package.

Every framework gets a virtual environment of its own, since some pin each other's dependencies: Recallite with the
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
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from benchmarks import pages, saving
from tests.system.integrations.frameworks import FRAMEWORKS, Framework, Theirs
from tests.system.integrations.plugin import LEFT_OUT, REACHES
from tests.system.integrations.results import markdown

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "benchmarks" / "results" / "integrations.json"
PAGE = ROOT / "docs" / "integrations" / "index.md"
_PYTEST = ("pytest>=8.3,<10", "pytest-asyncio>=0.24", "pytest-timeout")
_LIMIT_S = 600


def main() -> int:
    """Run what was asked for, print the matrix; 1 if a test failed."""
    options = _arguments()
    names = options.names or [name for name, each in FRAMEWORKS.items() if _test_files(each)]
    if unknown := sorted(set(names) - set(FRAMEWORKS)):
        print(f"no such integration: {', '.join(unknown)}; there are {', '.join(FRAMEWORKS)}", file=sys.stderr)
        return 2
    run: dict[str, Any] = {}
    failed = []
    # Two at a time: one downloads or waits while the other computes.
    with ThreadPoolExecutor(options.jobs) as pool:
        trials = {pool.submit(_tried, name, options): name for name in names}
        for trial in as_completed(trials):
            name, (found, told) = trials[trial], trial.result()
            print(f"\n== {name}\n{told}", flush=True)
            if found is None or any(
                each and each["failed"] + each["errors"] for each in (found["ours"], found.get("theirs"))
            ):
                failed.append(name)
            if found is not None:
                run[name] = found
                if options.save:
                    saving.write(saving.read(RESULTS) | run, RESULTS)
    if run:
        print(markdown(run))
    if run and options.save:
        PAGE.write_text(pages.filled(PAGE.read_text("utf-8")), "utf-8")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


def _test_files(framework: Framework) -> list[Path]:
    return sorted((ROOT / "tests" / "system" / "integrations").glob(f"test_{framework.module}*.py"))


def _tried(name: str, options: argparse.Namespace) -> tuple[dict[str, Any] | None, str]:
    """The version and the counts of one framework, None if it or its tests could not be had; and what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        with (work / "log").open("w+", encoding="utf-8", errors="replace") as log:
            try:
                found = _Trial(name, work, log).run(ours_alone=options.ours, sources=options.sources)
            except subprocess.CalledProcessError as fault:
                print(f"{' '.join(map(str, fault.cmd))} ended with {fault.returncode}", file=log)
                found = None
            log.seek(0)
            return found, log.read()


class _Trial:
    """One framework in an environment of its own."""

    def __init__(self, name: str, work: Path, log: TextIO) -> None:
        self._name, self._framework, self._work, self._log = name, FRAMEWORKS[name], work, log
        self._python = work / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def run(self, *, ours_alone: bool, sources: Path | None) -> dict[str, Any]:
        """Install, and run all tests, or ours alone."""
        framework = self._framework
        self._install()
        version = self._version()
        ours = [
            *map(str, _test_files(framework)),
            "tests/system/docs/test_snippets.py",
            "tests/system/docs/test_examples.py",
        ]
        ours += ["-k", f"test_{framework.module} or {self._name}.md or {framework.module}_agent"]
        found: dict[str, Any] = {
            "version": version, "python": platform.python_version(), "date": f"{datetime.date.today()}",
            "ours": self._pytest([*ours, "-o", "asyncio_mode=auto"], ROOT),
        }  # fmt: skip
        for theirs in () if ours_alone else framework.theirs:
            counts = self._theirs(theirs, self._sources(theirs, version, sources))
            before = found.get("theirs", dict.fromkeys(counts, 0))
            found["theirs"] = {key: counts[key] + before[key] for key in counts}
        return found

    def _call(self, command: Sequence[object], *, check: bool = True, **options: Any) -> None:
        """Run a command whose output goes to the log."""
        self._log.flush()
        called = [str(part) for part in command]
        subprocess.run(called, stdout=self._log, stderr=subprocess.STDOUT, check=check, **options)

    def _install(self) -> None:
        framework = self._framework
        self._call(["uv", "venv", "--quiet", "--python", sys.executable, self._work / "venv"])
        needs = [each for theirs in framework.theirs for each in theirs.needs]
        ours = f"{ROOT}[{framework.extra}]" if framework.extra else str(ROOT)
        command = ["uv", "pip", "install", "--quiet", "--python", self._python, "--editable", ours]
        self._call([*command, *_PYTEST, "hypothesis", "markdown-it-py", *framework.needs, *needs])

    def _version(self) -> str:
        if self._framework.package is None:
            return ""
        code = f"from importlib.metadata import version; print(version({self._framework.package!r}))"
        return subprocess.run([self._python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    def _sources(self, theirs: Theirs, version: str, sources: Path | None) -> Path:
        """A folder with the framework's tests: a checkout in `sources`, the source distribution, or a new checkout."""
        kept = None if sources is None else sources / theirs.repository.replace("/", "+")
        if kept is not None and kept.is_dir():
            return kept / theirs.within
        folder = self._work / "sources" / (theirs.sdist or theirs.repository).partition("=")[0].replace("/", "+")
        folder.mkdir(parents=True, exist_ok=True)
        if theirs.sdist is not None:
            wanted = theirs.sdist.format(version=version)
            # `:all:` would make pip compile what the package is built with, which took minutes.
            package = wanted.partition("==")[0]
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package]
            self._call([*command, "--dest", folder, wanted])
            # Before Python 3.11.4 there is no filter.
            safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
                archive.extractall(folder, **safely)
            return next(each for each in folder.iterdir() if each.is_dir())
        address, tag = f"https://github.com/{theirs.repository}", theirs.tag.format(version=version)
        self._call(["git", "clone", "--quiet", "--depth", "1", "--branch", tag, address, folder])
        return folder / theirs.within

    def _theirs(self, theirs: Theirs, folder: Path) -> dict[str, int]:
        """The counts of a framework's own tests."""
        plugin = f"tests.system.integrations.theirs.{self._framework.module}"
        options = ["-p", plugin, "--rootdir", folder, "-c", os.devnull]
        paths = [folder / path for path in theirs.paths]
        left_out = {LEFT_OUT: json.dumps(dict(theirs.left_out))}
        return self._pytest([*options, "-o", "asyncio_mode=auto", *paths], folder, left_out)

    def _pytest(
        self, arguments: Sequence[object], folder: Path, variables: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, int]:
        """Run pytest; how many tests passed, reached Recallite, failed, did not run, and were left out."""
        report = self._work / "report.xml"
        report.unlink(missing_ok=True)
        paths = os.pathsep.join([str(ROOT), str(folder)])  # in this order: `tests` is ours, see plugin.py
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        options = ["-q", "-p", "no:cacheprovider", "-p", "tests.system.integrations.plugin"]
        options += [f"--junitxml={report}", f"--timeout={_LIMIT_S}"]
        command = [self._python, "-P", "-m", "pytest", *options, *arguments]
        self._call(command, check=False, cwd=folder, env=environment)
        return counted(report)


def counted(report: Path) -> dict[str, int]:
    """What a report of pytest counts; a run in which no test passed has an error."""
    counts = dict.fromkeys(("passed", "reached", "failed", "errors", "skipped", "left_out"), 0)
    if not report.exists():
        return {**counts, "errors": 1}
    for case in ET.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            counts["left_out" if "left out: " in (skipped.get("message") or "") else "skipped"] += 1
        elif case.find("error") is not None:
            counts["errors"] += 1
        elif case.find("failure") is not None:
            counts["failed"] += 1
        else:
            counts["passed"] += 1
            counts["reached"] += case.find(f".//property[@name='{REACHES}']") is not None
    return counts if counts["passed"] else {**counts, "errors": counts["errors"] + 1}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.system.integrations", description="The integrations, with real packages."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="integrations (all)")
    parser.add_argument(
        "--sources", type=Path, help="folder of checkouts, named OWNER+REPOSITORY, in place of downloads"
    )
    parser.add_argument("--ours", action="store_true", help="run our tests and the page's examples alone")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--save", action="store_true", help="save the results and write them into the page of the docs")
    options = parser.parse_args()
    if options.ours and options.save:
        parser.error("--save saves whole results: leave out --ours")
    return options


if __name__ == "__main__":
    sys.exit(main())
