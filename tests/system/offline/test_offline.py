"""No process of ours looks up a host, opens a connection, or writes outside its own folders.

`strace` sees what compiled libraries do; where it is missing, an audit hook sees what Python does, and what stands in
the home directory afterwards tells of the rest.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import recallite
import recallite_kernels
import recallite_models
from recallite_kernels.cache import root
from tests.endpoint import serving
from tests.unit.documents.support import Put, pdf, word

REPOSITORY = Path(__file__).parents[3]
PROGRAMS = ("default_store", "library", "asynchronous", "documents", "workspace", "commands", "mapping")
CALLS = (
    "%network,?open,openat,?openat2,?creat,?mkdir,mkdirat,?rename,renameat,renameat2,?link,linkat,?symlink,symlinkat,"
    "?unlink,unlinkat,?rmdir,truncate,?mknod,mknodat,chdir,fchdir"
)
OPTIONS = ("-ff", "--seccomp-bpf", "-qq", "-y", "-s", "4096", "-e", "signal=none")
ON_FILES = ("open", "creat", "mk", "rename", "link", "symlink", "unlink", "rmdir", "truncate", "chdir", "fchdir")
WRITING = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)")
# A semaphore of numba or joblib is memory, which has a name there for a moment.
DEVICES = ("/dev/null", "/dev/tty", "/proc/self/", "/dev/shm/sem.")
# What names no peer, or sockets of this machine: an event loop wakes itself through a pair, and the resident process
# listens at a file of ours.
WITHOUT_A_PEER = re.compile(
    r"^(socket(pair)?\(AF_UNIX|(sendto|recvfrom|sendmsg|recvmsg|getsockopt|setsockopt|getsockname|getpeername|shutdown"
    r"|listen|accept4?)\()"
)
AT_A_FILE = re.compile(r'^(?:bind|connect)\([^{]*\{sa_family=AF_UNIX, sun_path="([^"@]+)"')


@cache
def traced() -> list[str] | None:
    """How to run a program under strace, without a network where that can be; None where strace cannot."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, *OPTIONS, "true"], capture_output=True).returncode:
        return None
    alone = ["unshare", "-rn"]
    if not shutil.which("unshare") or subprocess.run([*alone, strace, "-f", "true"], capture_output=True).returncode:
        alone = []
    return [
        *alone,
        strace,
        "-ff",
        "--seccomp-bpf",
        "-qq",
        "-y",
        "-s",
        "4096",
        "-e",
        f"trace={CALLS}",
        "-e",
        "signal=none",
    ]


class Run:
    """A program in folders of its own; `home` is empty before."""

    def __init__(self, folder: Path) -> None:
        self.work, self.home, self.temporary = (folder / name for name in ("work", "home", "tmp"))
        self.log = folder / "log"
        for each in (self.work, self.home, self.temporary, self.log):
            each.mkdir()
        kernels = root()
        self.own = [self.work, self.temporary, self.home / ".local/share/recallite", *([kernels] if kernels else [])]
        kept = ("PATH", "LANG", "LD_LIBRARY_PATH", "RECALLITE_KERNELS", "VIRTUAL_ENV")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ} | {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "PYTHONDONTWRITEBYTECODE": "1",
            **({"RECALLITE_CACHE_DIR": str(kernels)} if kernels else {}),
        }

    def program(self, name: str, *before: str) -> None:
        """Run it to its end, `before` in front of the command."""
        if name == "documents":
            self.put_documents()
        code = f"from tests.system.offline import programs; programs.{name}()"
        done = subprocess.run(
            [*before, sys.executable, "-c", code], cwd=self.work, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def put_documents(self) -> None:
        """One of each kind whose reader is installed."""
        folder = self.work / "documents"
        folder.mkdir()
        text = "Valkey replaced Redis in March"
        (folder / "a.md").write_text(f"# Caching\n\n{text}.\n")
        if importlib.util.find_spec("html_to_markdown"):
            (folder / "b.html").write_text(
                f"<html><head><link rel=stylesheet href='https://example.org/a.css'></head><body><h1>Caching</h1>"
                f"<img src='https://example.org/a.png'><p>{text}.</p></body></html>"
            )
        if importlib.util.find_spec("pypdfium2"):
            (folder / "c.pdf").write_bytes(pdf([Put(72, 700, text)]))
        if importlib.util.find_spec("mammoth"):
            (folder / "d.docx").write_bytes(word(("Normal", text)))
        if importlib.util.find_spec("chardet"):
            (folder / "e.txt").write_bytes("Größe und Maß: Valkey ersetzte Redis im März.\n".encode("cp1252") * 9)

    def foreign(self, path: str) -> bool:
        """Whether a path that is written is none of ours."""
        whole = Path(os.path.normpath(path))
        owned = any(whole.is_relative_to(folder) or folder.is_relative_to(whole) for folder in self.own)
        return not owned and not path.startswith(DEVICES)

    def left_at_home(self) -> list[str]:
        """Files in the home directory that are not Recallite's."""
        files = (file for file in self.home.rglob("*") if not file.is_dir())
        return sorted(str(file) for file in files if "recallite" not in file.relative_to(self.home).parts)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path.resolve())


def network_calls(run: Run) -> list[str]:
    """The traced calls that concern more than sockets of the process itself and at files in our own folders."""
    lines = (line for line in trace(run) if is_network(line) and not WITHOUT_A_PEER.match(line))
    return [line for line in lines if not ((at := AT_A_FILE.match(line)) and not run.foreign(at[1]))]


def foreign_writes(run: Run) -> list[str]:
    """The traced calls that make or change a file outside our own folders."""
    return [line for line in trace(run) if not is_network(line) and any(map(run.foreign, written(line, run.work)))]


def trace(run: Run) -> list[str]:
    return [
        line
        for file in sorted(run.log.iterdir())
        for line in file.read_text(errors="replace").splitlines()
        if "(" in line and not line.startswith(("+++", "---"))
    ]


def is_network(line: str) -> bool:
    return not line.startswith(ON_FILES)


def written(line: str, cwd: Path) -> list[str]:
    """The paths that a call of strace -y changes, or the directory it enters: /a/b of `mkdirat(3</a>, "b", 0777) = 0`.

    A relative path is one of `cwd`: entering a directory that is not ours is a finding in itself.
    """
    if line.startswith("open") and not WRITING.search(line):
        return []
    if re.search(r"= -1 E", line):  # nothing was done
        return []
    if opened := re.search(r"= \d+<(/[^>]*)>$", line):
        return [opened[1].removesuffix(" (deleted)")]
    folder, paths = str(cwd), []
    for base, text in re.findall(r'<(/[^>]*)>|"((?:[^"\\]|\\.)*)"', line):
        if base:
            folder = base
        elif text:
            paths.append(os.path.join(folder, text))
    return paths[-1:] if line.startswith("symlink") else paths


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_goes_out_and_nothing_is_left(run: Run, program: str) -> None:
    before = traced()
    if before is None:
        pytest.skip("strace is not installed, or may not trace here")
    run.program(program, *before, "-o", str(run.log / "trace"))
    assert any(str(run.work) in line for line in trace(run)), "the trace shows nothing of the program"
    assert network_calls(run) == []
    assert foreign_writes(run) == []
    assert run.left_at_home() == []
    assert list(run.temporary.iterdir()) == []


def test_an_audit_asks_nobody(run: Run) -> None:
    before = traced()
    if before is None:
        pytest.skip("strace is not installed, or may not trace here")
    run.program("auditing", *before, "-o", str(run.log / "trace"))
    assert network_calls(run) == []
    assert foreign_writes(run) == []
    assert run.left_at_home() == []


def test_litellm_asks_the_provider_and_nobody_else(run: Run) -> None:
    before = traced()
    if before is None:
        pytest.skip("strace is not installed, or may not trace here")
    if importlib.util.find_spec("litellm") is None:  # to import it here would be to look up hosts
        pytest.skip("litellm is not installed")
    with_network = before[before.index("-ff") - 1 :]
    with serving() as server:
        run.environment["RECALLITE_LLM_BASE_URL"] = server.url
        run.program("routing", *with_network, "-o", str(run.log / "trace"))
        assert len(server.asked) == 4
    # To a host or a name service. A socket of the kernel (AF_NETLINK) tells what addresses this machine has.
    named = re.compile(r"(connect|sendto|sendmsg|sendmmsg)\(.*(AF_INET|AF_UNIX, sun_path)")
    provider = f'sin_port=htons({server.server_address[1]}), sin_addr=inet_addr("127.0.0.1")'
    asked = [line for line in trace(run) if named.match(line)]
    assert any(provider in line for line in asked)
    assert [line for line in asked if provider not in line] == []
    assert foreign_writes(run) == []
    assert run.left_at_home() == []


@pytest.mark.parametrize("choice", [None, "False"])
def test_the_users_own_choice_of_litellms_lists_stands(choice: str | None) -> None:
    pytest.importorskip("stamina")
    names = ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    code = (
        "import os, sys, types\n"
        "sys.modules['litellm'] = types.SimpleNamespace(disable_hf_tokenizer_download=None)\n"
        "from recallite.remote import _litellm\n"
        f"_litellm(); print(*(os.environ[name] for name in {names}))"
    )
    given = environment if choice is None else {**environment, **dict.fromkeys(names, choice)}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [choice or "True"] * 2


@pytest.mark.slow
def test_compiling_the_kernels_writes_only_the_cache(run: Run) -> None:
    before = traced()
    if before is None:
        pytest.skip("strace is not installed, or may not trace here")
    del run.environment["RECALLITE_CACHE_DIR"]
    run.own[2:] = [run.home / ".cache/recallite"]
    run.program("compiling", *before, "-o", str(run.log / "trace"))
    assert network_calls(run) == []
    assert foreign_writes(run) == []
    assert run.left_at_home() == []


@pytest.mark.parametrize("program", PROGRAMS)
def test_python_opens_no_socket_and_no_foreign_file(run: Run, program: str) -> None:
    if traced() is not None:
        pytest.skip("strace sees all of it")
    audited(run, program)


def test_an_embedding_process_opens_no_socket_and_no_foreign_file(run: Run) -> None:
    audited(run, "library")


def audited(run: Run, program: str) -> None:
    run.environment["RECALLITE_AUDIT"] = str(run.log / "audit")
    run.environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), run.environment["PYTHONPATH"]])
    run.program(program)
    lines = (run.log / "audit").read_text().splitlines()
    assert any(str(run.work) in line for line in lines), "the hook saw nothing of the program"
    # The pair of an event loop is made of two objects; every use of another socket is told too.
    made = "network socket.__new__ (<AddressFamily.AF_UNIX"
    assert [line for line in lines if line.startswith("network") and not line.startswith(made)] == []
    written = (line.removeprefix("file ") for line in lines if line.startswith("file"))
    assert [path for path in written if run.foreign(path) and not path.startswith(str(run.log))] == []
    assert run.left_at_home() == []


def test_what_a_tracer_should_see_is_seen(run: Run) -> None:
    before = traced()
    if before is None:
        pytest.skip("strace is not installed, or may not trace here")
    code = (
        "import os, pathlib, socket\n"
        "pathlib.Path.home().joinpath('left').write_text('x')\n"
        "folder = os.open(os.environ['HOME'], os.O_RDONLY)\n"
        "os.mkdir('beside', dir_fd=folder)\n"
        "try: socket.create_connection(('127.0.0.1', 9))\n"
        "except OSError: pass\n"
    )
    subprocess.run(
        [*before, "-o", str(run.log / "trace"), sys.executable, "-c", code], cwd=run.work, env=run.environment
    )
    assert any(line.startswith("connect(") for line in network_calls(run))
    assert [written(line, run.work) for line in foreign_writes(run)] == [[f"{run.home}/left"], [f"{run.home}/beside"]]
    assert run.left_at_home() == [f"{run.home}/left"]


@pytest.mark.parametrize("choice", [None, "0", "1"])
def test_the_users_own_choice_of_telemetry_stands(choice: str | None) -> None:
    pytest.importorskip("onnxruntime")
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    code = (
        "import os, sys; sys.modules['onnxruntime'] = sys\n"
        "from recallite_models.runtime import load_onnxruntime\n"
        "load_onnxruntime(); print(os.environ['ORT_DISABLE_TELEMETRY'])"
    )
    given = environment if choice is None else {**environment, "ORT_DISABLE_TELEMETRY": choice}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (choice or "1")


def test_one_function_imports_onnxruntime() -> None:
    importing = [
        file.name
        for package in (recallite, recallite_kernels, recallite_models)
        for file in Path(str(package.__file__)).parents[1].rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if (isinstance(node, ast.Import) and any(each.name.split(".")[0] == "onnxruntime" for each in node.names))
        or (isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "onnxruntime")
    ]
    assert importing == ["runtime.py"]
