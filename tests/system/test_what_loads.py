"""What a program that imports Recallite loads: nothing heavy, and no wing that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import recallite
from recallite import Memory, Settings

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


def loaded_by(code, folder, *arguments):
    """The modules that a program has loaded when it ends."""
    watched = f"import atexit, sys; atexit.register(lambda: print('loaded', *sys.modules))\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", watched, *map(str, arguments)], capture_output=True, text=True, check=True, cwd=folder
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_naming_memory_loads_neither_numpy_nor_a_database(tmp_path):
    loaded = loaded_by("from recallite import Memory", tmp_path)
    assert "recallite.memory" in loaded
    assert not {"numpy", "apsw", "recallite_kernels", "recallite.engine"} & loaded


def test_a_program_that_only_reads_loads_nothing_that_writes(tmp_path):
    with Memory(tmp_path / "m.db", settings=Settings(embedder="none")) as memory:
        memory.remember("Ada likes tea")
    opened = "from recallite import Memory, Settings\nmemory = Memory('m.db', settings=Settings(embedder='none'))\n"
    listing = loaded_by(f"{opened}assert len(memory.list()) == 1; memory.close()", tmp_path)
    assert not {name for name in listing if name.startswith(("recallite.remember", "recallite.recall.pipeline"))}


def test_a_recall_loads_nothing_that_embeds_what_waits_if_nothing_does(tmp_path):
    with Memory(tmp_path / "m.db") as memory:
        memory.remember("Ada likes tea")
    opened = "from recallite import Memory\nmemory = Memory('m.db')\n"
    loaded = loaded_by(f"{opened}assert memory.recall('Who likes tea?'); memory.close()", tmp_path)
    assert "recallite.recall.pipeline" in loaded
    unused = {"recallite.remember.pending", "recallite.remote", "sqlite3", "subprocess", "tempfile", "tomllib"}
    assert unused.isdisjoint(loaded)


def test_a_question_in_the_past_tense_without_a_time_reads_no_languages(tmp_path):
    with Memory(tmp_path / "m.db", settings=Settings(embedder="none")) as memory:
        memory.remember("Ada moved to Oslo")
    opened = "from recallite import Memory, Settings\nmemory = Memory('m.db', settings=Settings(embedder='none'))\n"
    loaded = loaded_by(f"{opened}assert memory.recall('Where did Ada move?'); memory.close()", tmp_path)
    assert {"numpy.ma", "tomllib"}.isdisjoint(loaded)


def test_a_command_that_recalls_ends_before_cycles_are_collected(tmp_path):
    with Memory(tmp_path / "m.db") as memory:
        memory.remember("Ada likes tea")
    watch = "import gc\nbefore = gc.get_threshold()\n"
    watch += "gc.callbacks.append(lambda *what: gc.get_threshold() != before and print('collected'))"
    done = subprocess.run(
        [sys.executable, "-c", f"{watch}\n{COMMAND}", "--db", tmp_path / "m.db", "--no-warm", "recall", "tea"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Ada likes tea" in done.stdout
    assert "collected" not in done.stdout


COMMAND = "from recallite_server.main import process; process()"
HEAVY = {"numba", "llvmlite", "onnxruntime", "tokenizers", "recallite.embedding.onnx"}


def test_help_loads_no_store_and_no_numbers(tmp_path):
    loaded = loaded_by(COMMAND, tmp_path, "--help")
    assert not (HEAVY | {"numpy", "apsw", "pydantic", "recallite.memory"}) & loaded


@pytest.mark.parametrize("words", [["recall", "tea"], ["list"], ["sessions", "list"], ["demo", "--help"]])
def test_a_command_loads_no_package_that_it_does_not_need(tmp_path, words):
    with Memory(tmp_path / "m.db", settings=Settings(embedder="none")) as memory:
        memory.remember("Ada likes tea")
    code = "import sys; from recallite_cli.run import run; run(sys.argv[1:])"
    packages = {name.partition(".")[0] for name in loaded_by(code, tmp_path, "--db", tmp_path / "m.db", *words)}
    ours = {name for name in packages if name.startswith("recallite")}
    assert ours - {"recallite_kernels", "recallite_models"} == {"recallite", "recallite_cli"}


def test_a_server_for_one_host_loads_no_connections(tmp_path):
    pytest.importorskip("mcp", reason="the extra mcp of Recallite is not installed")
    loaded = loaded_by("import recallite_server.mcp.server", tmp_path)
    assert not {"httptools", "recallite_server.http.connections"} & loaded


@pytest.mark.skipif(sys.platform != "linux", reason="a file without a name needs tempfile elsewhere")
def test_a_recall_from_a_snapshot_loads_neither_tempfile_nor_dialects(tmp_path):
    with Memory(tmp_path / "m.db", settings=Settings(embedder="none")) as memory:
        memory.remember_many(f"Note {number} of tea" for number in range(1_000))
    assert (tmp_path / "m.db-index").exists()
    loaded = loaded_by(COMMAND, tmp_path, "--db", tmp_path / "m.db", "--no-warm", "recall", "tea")
    assert "recallite.index.snapshot" in loaded
    assert not {"tempfile", "subprocess", "recallite.compat", "llvmlite"} & loaded


def test_a_command_ends_its_process_after_what_was_registered_for_the_exit(tmp_path):
    ends = "import atexit, sys; from recallite_server.main import process\ntry: process()\n"
    ends += "finally: atexit.register(print, 'registered'); sys.stdout.write('kept, ')\n"
    slow = f"class Slow:\n    def __del__(self): print('freed')\nslow = Slow()\n{ends}"
    for code, arguments, returned in ((slow, ["--version"], 0), (slow, ["nothing"], 2)):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == returned
        assert done.stdout.splitlines()[-1] == "kept, registered"
    before = f"import atexit\natexit.register(print, 'before')\n{slow}"
    done = subprocess.run([sys.executable, "-c", before, "nothing"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout.splitlines() == ["kept, registered", "before", "freed"]


@pytest.mark.parametrize(
    "runs",
    [
        "from recallite_server.main import main\nmain()",
        "import runpy\ntry: runpy.run_module('recallite', run_name='__main__')\nexcept SystemExit: pass",
    ],
)
def test_a_program_that_runs_a_command_has_its_own_exit_code_and_process(tmp_path, runs):
    code = f"import gc, os, sys\nbefore = gc.get_threshold(), dict(os.environ)\n{runs}\n"
    code += "assert (gc.get_threshold(), dict(os.environ)) == before\nsys.exit(5)"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (5, "")


def test_stats_loads_no_model_and_no_compiler(tmp_path):
    with Memory(tmp_path / "m.db") as memory:
        memory.remember("Ada likes tea")
    loaded = loaded_by(COMMAND, tmp_path, "--db", tmp_path / "m.db", "stats")
    assert "recallite.engine" in loaded
    assert not HEAVY & loaded
    assert not {name for name in loaded if name.startswith("recallite.remember")}


@pytest.mark.parametrize("path", ["m.db", ":memory:"])
def test_a_memory_loads_no_wing_that_it_does_not_use(tmp_path, path):
    code = f"""
import sys
from recallite import Memory, Settings
with Memory({path!r}, settings=Settings(embedder="none")) as memory:
    memory.remember("Ada likes tea")
    assert memory.recall("tea")[0].text == "Ada likes tea"
print(*sorted({{name.split(".")[1] for name in sys.modules if name.startswith("recallite.")}}))
print(*sorted({{name.partition(".")[0] for name in sys.modules if name.startswith("recallite_")}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    wings, packages = (line.split() for line in done.stdout.splitlines())
    above = {"agents", "compat", "documents", "doors", "review", "transfer", "plugin"}
    assert not above & set(wings)
    assert set(packages) <= {"recallite_kernels", "recallite_models"}


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
