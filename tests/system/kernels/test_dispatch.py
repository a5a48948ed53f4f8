"""Which backend answers, in processes of their own: the choice is made at import."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time

import pytest

from recallite_kernels import dispatch
from tests.limits import LAST_RESORT_SECONDS

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
needs_posix = pytest.mark.skipif(os.name != "posix", reason="file modes and fork are POSIX")


@pytest.fixture(scope="module")
def warm(tmp_path_factory, compiled_kernels):
    """A complete cache for this file alone: a copy of that of all tests."""
    folder = tmp_path_factory.mktemp("warm")
    shutil.copytree(compiled_kernels.folder, folder / compiled_kernels.folder.name)
    # A run with NUMBA_ settings has its kernels under another key than the processes here, which have none.
    run("import recallite_kernels as k; k.warmup()", RECALLITE_CACHE_DIR=folder, RECALLITE_KERNELS="numba")
    return folder


def run(code, fails=False, **environment):
    """Runs code with `answer(value)` at hand, and returns the last value answered."""
    setup = "import json\ndef answer(value): print('>' + json.dumps(value), flush=True)\n"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RECALLITE_", "NUMBA_"))}
    done = subprocess.run(
        [sys.executable, "-c", setup + textwrap.dedent(code)],
        env={**clean, **{name: str(value) for name, value in environment.items()}},
        capture_output=True,
        text=True,
        timeout=LAST_RESORT_SECONDS,
        check=False,
    )
    if fails:
        assert done.returncode == 1, done.stderr
        return done.stderr
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    answers = [line[1:] for line in done.stdout.splitlines() if line.startswith(">")]
    return json.loads(answers[-1]) if answers else None


def killed(code, **environment):
    """Runs code that kills its process, and returns the value that it answered."""
    setup = "import json\ndef answer(value): print('>' + json.dumps(value), flush=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + textwrap.dedent(code)],
        env={**os.environ, "RECALLITE_KERNELS": "numba", **{name: str(each) for name, each in environment.items()}},
        stdout=subprocess.PIPE,
        text=True,
        timeout=LAST_RESORT_SECONDS,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    return json.loads(done.stdout.strip()[1:])


STATUS = "s = k.status(); answer([s.active, s.selected, s.compiled, s.reason])"


def test_the_import_loads_numpy_but_not_numba(tmp_path):
    code = (
        "import sys, recallite_kernels as k; answer([name in sys.modules for name in ('numpy', 'numba', 'recallite')])"
    )
    assert run(code, RECALLITE_CACHE_DIR=tmp_path) == [True, False, False]


def test_the_environment_chooses_python(tmp_path):
    code = (
        f"import recallite_kernels as k; assert k.warmup() == {{}}; assert k.start_background(True) is None; {STATUS}"
    )
    assert run(code, RECALLITE_KERNELS="python", RECALLITE_CACHE_DIR=tmp_path) == [
        "python", "python", False, "RECALLITE_KERNELS=python",
    ]  # fmt: skip


def test_another_choice_is_an_error_that_says_what_is_wanted():
    error = run("import recallite_kernels", fails=True, RECALLITE_KERNELS="fortran")
    assert "KernelError: RECALLITE_KERNELS: 'fortran'; wanted numba or python" in error


WITHOUT_NUMBA = """
    import importlib.util
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: None if name == "numba" else find(name, package)
"""


def test_without_numba_python_answers_and_says_so():
    code = textwrap.dedent(WITHOUT_NUMBA) + f"import recallite_kernels as k\n{STATUS}"
    assert run(code) == ["python", "python", False, "numba is not installed"]


def test_asking_for_a_numba_that_is_not_there_is_an_error():
    code = textwrap.dedent(WITHOUT_NUMBA) + "import recallite_kernels"
    assert "pip install numba" in run(code, fails=True, RECALLITE_KERNELS="numba")


@needs_numba
def test_an_llvm_that_cannot_be_imported_leaves_python_answering(tmp_path):
    code = f"""
    import sys
    import recallite_kernels as k
    sys.modules["llvmlite"] = None
    k.start_background(compile=True).join()
    {STATUS}
    """
    active, chosen, compiled, reason = run(code, RECALLITE_CACHE_DIR=tmp_path)
    assert (active, chosen, compiled) == ("python", "numba", False)
    assert reason.startswith("numba cannot be used: ModuleNotFoundError")


@needs_numba
def test_a_disabled_jit_is_reported(tmp_path):
    code = "import recallite_kernels as k; k.warmup()"
    error = run(code, fails=True, RECALLITE_CACHE_DIR=tmp_path, NUMBA_DISABLE_JIT="1")
    assert "KernelError: warmup: numba cannot be used: RuntimeError: NUMBA_DISABLE_JIT is set" in error


@needs_numba
def test_a_cold_cache_answers_with_python_and_compiles_nothing(tmp_path):
    code = f"""
    import sys
    import numpy as np
    import recallite_kernels as k
    assert not k.cached() and k.start_background() is None
    k.decay(np.zeros(1), 1.0)
    assert "numba" not in sys.modules
    {STATUS}
    """
    assert run(code, RECALLITE_CACHE_DIR=tmp_path) == [
        "python", "numba", False, "not compiled yet; warmup compiles them",
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())


@needs_numba
def test_a_warm_cache_is_loaded_in_the_background_without_numba(warm):
    code = f"""
    import sys
    import numpy as np
    import recallite_kernels as k
    assert k.cached() and k.status().reason == "compiled and cached, but not loaded by this process"
    found = k.decay(np.zeros(1), 1.0).tolist()
    k.start_background().join()
    assert k.decay(np.zeros(1), 1.0).tolist() == found == [1.0]
    assert k.start_background() is None and k.warmup()
    assert "numba" not in sys.modules
    {STATUS}
    """
    active, chosen, compiled, reason = run(code, RECALLITE_CACHE_DIR=warm)
    assert (active, chosen, compiled) == ("numba", "numba", True)
    assert reason.startswith(f"kept in {warm}")


@needs_numba
def test_a_system_short_of_files_is_tried_again(warm):
    code = f"""
    import errno
    import recallite_kernels as k
    from recallite_kernels import dispatch
    prepare, failures = dispatch._prepare, [OSError(errno.EMFILE, "Too many open files")] * 2
    def short():
        if failures:
            raise failures.pop()
        return prepare()
    dispatch._prepare, dispatch._RETRY_SECONDS = short, 0.0
    k.start_background().join()
    {STATUS}
    """
    active, _, compiled, reason = run(code, RECALLITE_CACHE_DIR=warm)
    assert (active, compiled) == ("numba", True)
    assert reason.startswith(f"kept in {warm}")


@needs_numba
@needs_posix
def test_the_cache_is_the_users_own(warm):
    (folder,) = warm.glob("kernels-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not [file for file in folder.iterdir() if stat.S_IMODE(file.stat().st_mode) & 0o077]


@needs_numba
def test_a_home_that_cannot_be_written_still_works(tmp_path):
    # A file where the folder should be: refused to every user, root too.
    blocked = tmp_path / "file"
    blocked.write_text("")
    code = f"""
    import recallite_kernels as k
    from recallite_kernels.numba_backend import _jit
    _jit.KERNELS[:] = [kernel for kernel in _jit.KERNELS if kernel.name in ("quantize_int8", "sketch")]  # all take 20 s
    k.warmup()
    {STATUS}
    """
    active, _, compiled, reason = run(code, RECALLITE_CACHE_DIR=blocked)
    assert (active, compiled) == ("numba", True)
    assert reason.startswith("compiled in memory only:")


@needs_numba
def test_numbas_own_cache_directory_is_left_alone(warm):
    code = """
    import os
    import recallite_kernels as k
    k.warmup()
    import numba
    answer([numba.config.CACHE_DIR, "NUMBA_CACHE_DIR" in os.environ])
    """
    assert run(code, RECALLITE_CACHE_DIR=warm) == ["", False]


@needs_numba
def test_progress_is_reported_and_seconds_returned(warm):
    code = """
    import recallite_kernels as k
    seen = []
    seconds = k.warmup(lambda name, done, total: seen.append((name, done, total)))
    assert [done for _, done, _ in seen] == list(range(1, seen[-1][2] + 1))
    assert set(seconds) == {name for name, _, _ in seen} | {"import"}
    answer(min(seconds.values()) > 0)
    """
    assert run(code, RECALLITE_CACHE_DIR=warm) is True


@needs_numba
@pytest.mark.parametrize("when", ["before any kernel", "in the middle"])
def test_the_process_may_end_while_the_background_compiles(tmp_path, when):
    code = f"""
    import atexit, time
    import recallite_kernels as k
    from recallite_kernels import dispatch
    # Hooks run last in, first out: this one sees what the package's own has left behind.
    atexit.register(lambda: answer(thread.is_alive()))
    thread = k.start_background(compile=True)
    while {when == "in the middle"} and len(dispatch._seconds) < 1:
        time.sleep(0.001)
    assert thread.is_alive()
    """
    assert run(code, RECALLITE_CACHE_DIR=tmp_path) is False
    assert not list(tmp_path.glob("kernels-*/complete"))


# What answers in the place of a kernel.
ANSWERS = """
    def answers(name):
        return getattr(dispatch.active, name).__module__.split(".")[1]
"""


@needs_numba
def test_the_kernel_of_a_recall_answers_as_soon_as_it_is_compiled(tmp_path):
    code = f"""
    import time
    import recallite_kernels as k
    from recallite_kernels import dispatch
    {ANSWERS}
    assert answers("recall") == "python_backend"
    thread = k.start_background(compile=True)
    thread.join()
    answer([answers(name) for name in ("recall", "bm25_top_k")])
    """
    # The other waits until it is asked for.
    assert run(code, RECALLITE_CACHE_DIR=tmp_path) == ["numba_backend", "dispatch"]


# Two kernels, one of which a recall needs: compiled in a second each.
TWO = """
    from recallite_kernels.numba_backend import _jit
    _jit.KERNELS[:] = [kernel for kernel in _jit.KERNELS if kernel.name in ("quantize_int8", "sketch")]
"""


@needs_numba
def test_what_a_recall_does_not_need_is_compiled_when_it_is_asked_for(tmp_path):
    code = f"""
    import threading
    import numpy as np
    import recallite_kernels as k
    from recallite_kernels import dispatch
    {ANSWERS}
    {TWO}
    k.start_background(compile=True).join()
    assert k.status().active == "numba" and "quantize_int8" not in dispatch._seconds
    vectors = np.arange(8, dtype=np.float32).reshape(2, 4)
    before = [part.tolist() for part in k.quantize_int8(vectors)]
    [thread.join() for thread in threading.enumerate() if thread.name == "recallite-kernels"]
    assert [part.tolist() for part in k.quantize_int8(vectors)] == before
    answer([answers("quantize_int8"), len(dispatch._threads)])
    """
    assert run(code, RECALLITE_CACHE_DIR=tmp_path) == ["numba_backend", 2]


@needs_numba
@pytest.mark.parametrize(
    "hindrance", ["sys.frozen = True", "sys.executable = ''", "sys.executable = '/opt/app/bin/server'",
                  "sys.executable = '/missing/python3'", "sys.executable = '/bin/python-that-is-none'",
                  "compiler_process._MAIN = 'print(1); raise SystemExit(3)'"],
)  # fmt: skip
def test_without_a_process_to_compile_in_a_thread_compiles(tmp_path, hindrance):
    code = f"""
    import sys
    import recallite_kernels as k
    from recallite_kernels import compiler_process
    {TWO}
    {hindrance}
    k.warmup()
    {STATUS}
    """
    assert run(code, RECALLITE_CACHE_DIR=tmp_path)[:3] == ["numba", "numba", True]
    assert len(list(tmp_path.glob("kernels-*/*.kernel"))) == 2


@needs_numba
@needs_posix
def test_the_process_that_compiles_ends_with_the_one_that_started_it(tmp_path):
    code = """
    import os, signal, time
    import recallite_kernels as k
    from recallite_kernels import dispatch
    thread = k.start_background(compile=True)
    while dispatch._compiler is None and thread.is_alive():
        time.sleep(0.001)
    answer(dispatch._compiler._process.pid)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    compiler = int(killed(code, RECALLITE_CACHE_DIR=tmp_path))
    deadline = time.monotonic() + LAST_RESORT_SECONDS
    while time.monotonic() < deadline:
        try:
            os.kill(compiler, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("it still runs")


@needs_numba
@needs_posix
def test_a_child_forked_while_kernels_compile_can_use_them(tmp_path, warm):
    # The parent compiles from nothing; the child must neither wait for a thread that it does not have nor crash.
    code = f"""
    import os, sys, time
    import numpy as np
    import recallite_kernels as k
    from recallite_kernels import dispatch
    k.start_background(compile=True)
    while len(dispatch._seconds) < 2:
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        os.environ["RECALLITE_CACHE_DIR"] = {str(warm)!r}
        assert k.status().active == "python" and "forked" in k.status().reason
        assert k.decay(np.zeros(1), 1.0).tolist() == [1.0]
        k.warmup()
        assert k.status().active == "numba"
        assert k.sketch(np.ones((1, 64), np.float32)).tolist() == [[2**64 - 1]]
        os._exit(0)
    _, code = os.waitpid(child, 0)
    answer(code)
    """
    assert run(code, RECALLITE_CACHE_DIR=tmp_path) == 0


@needs_numba
@needs_posix
def test_a_child_forked_after_loading_uses_the_kernels(warm):
    code = """
    import os
    import numpy as np
    import recallite_kernels as k
    k.warmup()
    child = os.fork()
    if child == 0:
        ok = k.status().active == "numba" and k.decay(np.zeros(1), 1.0).tolist() == [1.0]
        os._exit(0 if ok else 3)
    answer(os.waitpid(child, 0)[1])
    """
    assert run(code, RECALLITE_CACHE_DIR=warm) == 0


@needs_numba
def test_threads_that_warm_up_together_load_once(warm):
    code = """
    import threading
    import recallite_kernels as k
    calls = []
    threads = [threading.Thread(target=lambda: k.warmup(lambda *_: calls.append(1))) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    from recallite_kernels.protocol import NAMES
    answer([k.status().active, len(calls) == len(NAMES)])
    """
    assert run(code, RECALLITE_CACHE_DIR=warm) == ["numba", True]


@needs_numba
def test_after_a_warm_up_every_kernel_answers_compiled(warm):
    code = """
    import recallite_kernels as k
    from recallite_kernels import dispatch
    from recallite_kernels.protocol import NAMES
    k.warmup()
    answer({getattr(dispatch.active, name).__module__.split(".")[1] for name in NAMES} == {"numba_backend"})
    """
    assert run(code, RECALLITE_CACHE_DIR=warm)


def test_the_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.delenv("RECALLITE_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert dispatch.cache.root() == tmp_path / "recallite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert dispatch.cache.root() == tmp_path / ".cache" / "recallite"


@needs_numba
def test_the_process_that_compiles_takes_no_settings_of_the_current_folder(tmp_path, monkeypatch):
    from recallite_kernels.compiler_process import CompilerProcess

    (tmp_path / ".numba_config.yaml").write_text("disable_jit: 1\n")  # Numba reads it where PyYAML is installed
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECALLITE_CACHE_DIR", "cache")
    assert [*CompilerProcess(sys.executable, ["decay"]).compiled()] == ["decay"]
    assert [path.name for path in (tmp_path / "cache").rglob("*.kernel")] == ["decay.kernel"]
