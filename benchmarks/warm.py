"""Times of the resident process: python -m benchmarks.warm [--records N] [--runs N] [--cold-runs N] [--hosts N].

Each run is a process from its start to its end, as a host or a shell starts it, or a host's conversation from the start
of `recallite mcp`. Hooks and hosts are started as `connect claude-code` has it, hooks in one scope with all memories.
The end of a turn leaves two memories in the store. Memory is the proportional set size of all processes together.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter, time_ns
from typing import Any

import numpy as np

from benchmarks.corpus import queries, read_lines
from recallite import Memory, Settings
from recallite_server.warm.quick import quick_start

RECALLITE = [sys.executable, "-m", "recallite"]
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
Times = dict[str, list[float]]


class Host:
    """A host of `recallite mcp`, and the seconds until it had its handshake."""

    def __init__(self, db: str, environment: Mapping[str, str]) -> None:
        began = perf_counter()
        self._process = subprocess.Popen(
            [*quick_start(), "--db", db, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._ask("initialize", CLIENT)
        self.handshake_seconds = perf_counter() - began

    @property
    def pid(self) -> int:
        """The process that the host has started."""
        return self._process.pid

    def recall(self, query: str) -> float:
        """The seconds of a call of the tool `recall`."""
        began = perf_counter()
        self._ask("tools/call", {"name": "recall", "arguments": {"query": query}})
        return perf_counter() - began

    def _ask(self, method: str, params: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while json.loads(self._process.stdout.readline()).get("id") != method:
            continue

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


def timed(db: str, questions: list[str], environment: Mapping[str, str], folder: Path) -> Times:
    """Seconds of commands, hooks and hosts, by what they did."""
    times: Times = {}
    for number, question in enumerate(questions):
        calls = {"recallite recall": ((*RECALLITE, "--db", db, "recall", question), b"")}
        for event, fields in _events(f"{os.getpid()}-{time_ns()}-{number}", question, folder).items():
            words = (*quick_start(), "--db", db, "hook", event, "--scope", "/")
            calls[f"hook {event}"] = words, json.dumps(fields).encode()
        for name, (command, payload) in calls.items():
            began = perf_counter()
            subprocess.run(command, env=environment, input=payload, stdout=subprocess.DEVNULL, check=name[0] == "h")
            times.setdefault(name, []).append(perf_counter() - began)
        with Host(db, environment) as host:
            times.setdefault("mcp handshake", []).append(host.handshake_seconds)
            times.setdefault("mcp first call", []).append(host.recall(question))
    return times


def _events(session: str, prompt: str, folder: Path) -> dict[str, dict[str, str]]:
    """The payloads of a session's events, with a transcript of one turn."""
    transcript = folder / f"{session}.jsonl"
    lines = [
        {"type": role, "message": {"role": role, "content": f"{text} {session}"}, "sessionId": session,
         "uuid": f"{session}-{role}", "cwd": str(folder), "timestamp": "2026-04-01T10:00:00Z"}
        for role, text in (("user", prompt), ("assistant", "It is done, and the tests pass:"))
    ]  # fmt: skip
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    base = {"session_id": session, "transcript_path": str(transcript), "cwd": str(folder)}
    return {
        "session-start": {**base, "hook_event_name": "SessionStart", "source": "startup"},
        "prompt": {**base, "hook_event_name": "UserPromptSubmit", "prompt": prompt},
        "turn": {**base, "hook_event_name": "Stop"},
    }


def pss_megabytes(pid: int) -> float:
    """The proportional set size of a process."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    return int(text.partition("\nPss:")[2].split()[0]) / 1024


def memory_of_hosts(db: str, hosts: int, question: str, environment: Mapping[str, str]) -> tuple[float, float]:
    """The megabytes of a number of hosts that have recalled, and of the resident process beside them."""
    with ExitStack() as stack:
        started = [stack.enter_context(Host(db, environment)) for _ in range(hosts)]
        for host in started:
            host.recall(question)
        of_hosts = sum(pss_megabytes(host.pid) for host in started)
        return of_hosts, sum(map(pss_megabytes, resident(environment)))


def resident(environment: Mapping[str, str]) -> list[int]:
    """The resident processes."""
    status = [*RECALLITE, "warm", "status", "--json"]
    return [entry["pid"] for entry in json.loads(subprocess.run(status, env=environment, capture_output=True).stdout)]


@contextmanager
def prepared(records: int, corpus: Path | None, embedder: str, folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A store of this size, and an environment with a resident process that has it open."""
    db = str(folder / f"{records}-{embedder}.db")
    if not os.path.exists(db):
        with Memory(db, settings=Settings(embedder=embedder)) as memory:
            memory.remember_many(read_lines(corpus, records))
            memory.store.warmup()
    with tempfile.TemporaryDirectory(prefix="warm") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime, "RECALLITE_EMBEDDER": embedder}
        for name in ("RECALLITE_WARM", "CI"):
            environment.pop(name, None)
        subprocess.run([*RECALLITE, "--db", db, "warm", "start"], env=environment, check=True)
        try:
            yield db, environment
        finally:
            subprocess.run([*RECALLITE, "warm", "stop"], env=environment, check=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=200, help="runs with the resident process")
    parser.add_argument("--cold-runs", type=int, default=20, help="runs without it, which take seconds each")
    parser.add_argument("--hosts", type=int, default=10)
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a memory per line; else made up")
    parser.add_argument("--work", type=Path, help="folder that keeps the store between runs")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        db, environment = stack.enter_context(prepared(options.records, options.corpus, options.embedder, folder))
        cold = {**environment, "RECALLITE_WARM": "0"}
        questions = queries(read_lines(options.corpus, options.records), options.runs)
        transcripts = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(f"{options.records:,} memories", flush=True)
        for way, variables, runs in (("warm", environment, options.runs), ("cold", cold, options.cold_runs)):
            timed(db, questions[:1], variables, transcripts)  # files into the page cache
            for name, seconds in timed(db, questions[:runs], variables, transcripts).items():
                p50, p95 = np.percentile(seconds, [50, 95]) * 1000
                print(f"{f'{name}, {way}':26} {runs:4} runs   p50 {p50:7,.0f} ms   p95 {p95:7,.0f} ms", flush=True)
        for name, variables in (("warm", environment), ("cold", cold)):
            of_hosts, beside = memory_of_hosts(db, options.hosts, questions[0], variables)
            others = f" and {beside:,.0f} MB of the resident process" if name == "warm" else ""
            print(f"{options.hosts} mcp hosts, {name}: {of_hosts:,.0f} MB{others}")


if __name__ == "__main__":
    main()
