"""import and export: files and pipes, what stays when they are stopped."""

import subprocess

from tests.unit.conftest import start


def test_a_signal_ends_a_process_with_130(db):
    process = start("import", "-", "--format", "text", "--batch-size", "1", db=db, RECALLITE_EMBEDDER="none")
    process.stdin.write((b"word " * 200 + b"\n") * 120)
    process.stdin.flush()  # more than a pipe holds: the import is under way
    process.send_signal(subprocess.signal.SIGINT)
    process.stdin.close()
    err = process.stderr.read()
    assert process.wait() == 130
    assert err.startswith(b"recallite: Interrupted: stopped; what is stored stays, and is not stored twice")
    process.stdout.close()
    process.stderr.close()


def test_a_closed_pipe_is_silent(run, db):
    run("import", "-", "--format", "text", stdin="".join(f"memory number {n}\n" for n in range(2000)))
    for command in (("export", "-"), ("list", "--limit", "2000")):
        process = start(*command, db=db, RECALLITE_EMBEDDER="none")
        assert process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        process.stdin.close()
        assert (process.wait(), err) == (0, b"")
