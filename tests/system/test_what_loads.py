"""What a program that imports Recallite loads: nothing heavy, and no wing that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import recallite

ROOT = Path(__file__).resolve().parents[2]


def test_all_names_what_is_public():
    code = "import recallite; print(*[name for name in dir(recallite)])"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(recallite.__all__)
    for name in recallite.__all__:
        assert getattr(recallite, name) is not None


def test_import_recallite_loads_nothing_heavy():
    code = (
        "import sys, recallite; "
        "print(*sorted({'numpy', 'numba', 'apsw', 'msgspec', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("path", ["m.db", ":memory:"])
def test_a_memory_loads_no_wing_that_it_does_not_use(tmp_path, path):
    code = f"""
import sys
from recallite import Memory, Settings
with Memory({path!r}, settings=Settings(embedder="none")) as memory:
    memory.remember("Ada likes tea")
    assert memory.recall("tea")[0].text == "Ada likes tea"
print(*sorted({{name.split(".")[1] for name in sys.modules if name.startswith("recallite.")}}))
print(*[name for name in sys.modules if name.startswith("recallite.store.postgres")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    wings, postgres = (line.split() for line in done.stdout.splitlines())
    above = {"agents", "bulk", "compat", "documents", "doors", "integrations", "notes", "review", "transfer", "plugin"}
    assert not above & set(wings)
    assert postgres == []


def test_the_unit_tests_import_what_the_extra_test_installs():
    """In README's command nothing else is there: what another extra brings would not be found."""
    code = """
import importlib.metadata as metadata, re, sys
import pytest
from packaging.requirements import Requirement
found, waiting = set(), [("recallite", "test"), ("recallite", "")]
while waiting:
    name, extra = waiting.pop()
    if (name, extra) in found:
        continue
    found.add((name, extra))
    try:
        needed = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        continue
    for each in map(Requirement, needed):
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            normal = re.sub(r"[-_.]+", "-", each.name).lower()
            waiting += [(normal, ""), *((normal, other) for other in each.extras)]
names = {name for name, _ in found} | {"pip", "setuptools"}
shut = {
    module for module, packages in metadata.packages_distributions().items()
    if not names & {re.sub(r"[-_.]+", "-", package).lower() for package in packages}
}
class Shut:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in shut:
            raise ModuleNotFoundError(f"No module named {name!r}: it is not in the extra test", name=name)
sys.meta_path.insert(0, Shut())
sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests/unit"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
