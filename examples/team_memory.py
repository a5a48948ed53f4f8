"""A team's shared memory over HTTP: one server, and a token for each member and each kind of use.

Ada's and Bo's agents write shared memories to /team, and private ones to their own scope. The token of the dashboard
only reads. Needs the extras `server` and `client`.

Output:

    Ada's agent finds: The staging cluster moved to Oslo
    Bo's agent finds: The staging cluster moved to Oslo
    Ada's notes are none of Bo's: NotFound
    The dashboard counts 2 memories of the team
    The dashboard cannot write: AccessDenied
    After its token is revoked: AccessDenied
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recallite import Memory
from recallite.errors import AccessDenied, NotFound
from recallite_server.client import Client
from recallite_server.http.access_tokens import Token, Tokens


@contextmanager
def server(store: Path) -> Iterator[str]:
    """Run `recallite serve` in its own process and yield its address."""
    command = [sys.executable, "-m", "recallite", "--db", str(store), "serve", "--port", "0", "--require-tokens"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        address = re.search(r"http://\S+", running.stderr.readline())
        assert address is not None, "the server did not start"
        try:
            yield address[0]
        finally:
            running.terminate()


def use(address: str, ada: Token, bo: Token, dashboard: Token) -> None:
    """Do what three programs on three machines would do."""
    with Client(address, token=ada.secret) as memory:
        memory.remember("The staging cluster moved to Oslo", scope="/team", tags=["infrastructure"])
        memory.remember("Deploys are frozen from December 20", scope="/team")
        note = memory.remember("Ask Bo about the failed backup before Friday", scope="/people/ada")
        print("Ada's agent finds:", memory.recall("Where is staging?", relevant=True)[0].text)
    with Client(address, token=bo.secret) as memory:
        print("Bo's agent finds:", memory.recall("Where is staging?", relevant=True)[0].text)
        try:
            memory.get(note.id)
        except NotFound as refused:
            print("Ada's notes are none of Bo's:", type(refused).__name__)
    with Client(address, token=dashboard.secret) as memory:
        print(f"The dashboard counts {memory.count()} memories of the team")
        try:
            memory.remember("a line that nobody said")
        except AccessDenied as refused:
            print("The dashboard cannot write:", type(refused).__name__)


def main() -> None:
    """Make a store and tokens, start the server, use it, revoke a token."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "team.db"
        with Memory(store) as memory:
            tokens = Tokens(memory)
            # A token sees one scope: Ada administers all of it, Bo and the dashboard see the team's.
            ada, bo = tokens.create(name="ada"), tokens.create(scope="/team", name="bo")
            dashboard = tokens.create(scope="/team", read_only=True, name="dashboard")
        with server(store) as address:
            use(address, ada, bo, dashboard)
            with Memory(store) as memory:
                Tokens(memory).revoke(dashboard.id)
            try:
                with Client(address, token=dashboard.secret) as client:
                    client.count()
            except AccessDenied as refused:
                print("After its token is revoked:", type(refused).__name__)


if __name__ == "__main__":
    main()
