"""Exit codes, one line of error, and stores that cannot be used."""

import subprocess
import sys

from recallite_server.main import main
from tests.unit.cli.test_failures import failed


def test_a_wrong_environment_is_named(process):
    done = process("stats", RECALLITE_KERNELS="cobol")
    failed(done, 4, "KernelError")


def test_a_full_disk_behind_standard_output(empty):
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "recallite", "--db", str(empty), "list", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (
        3,
        b'{"error":{"type":"OSError","reason":null,"message":"[Errno 28] No space left on device"}}\n',
    )


def test_main_returns_the_code_of_a_process(process, empty):
    assert process("count", RECALLITE_EMBEDDER="none") == (0, "0\n", "")
    assert process("get", "nobody", RECALLITE_EMBEDDER="none").code == 1
    assert main(["--version"]) == 0
