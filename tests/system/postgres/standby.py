"""A second server that follows another and can take its place."""

from __future__ import annotations

from tests.limits import until
from tests.system.postgres.binaries import run
from tests.system.postgres.server import SUPERUSER, PostgresServer

_NAME = "standby"


def standby_of(primary: PostgresServer, *, synchronous: bool) -> PostgresServer:
    """A standby that follows `primary`, which runs. Where it is `synchronous` the primary waits for it at commits."""
    standby = PostgresServer(fsync=primary.settings["fsync"] == "on")
    try:
        copy = ["--pgdata", standby.data, "--host", primary.folder, "--username", SUPERUSER, "--checkpoint=fast"]
        run(standby.binaries / "pg_basebackup", *copy, "--write-recovery-conf", "--no-sync")
        standby.settings["primary_conninfo"] = f"host={primary.folder} user={SUPERUSER} application_name={_NAME}"
        standby.start()
        if synchronous:
            primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{_NAME}'")
            primary.execute("SELECT pg_reload_conf()")
        wanted = "sync" if synchronous else "async"
        until(lambda: (wanted, "streaming") in primary.execute("SELECT sync_state, state FROM pg_stat_replication"))
    except BaseException:
        standby.remove()
        raise
    return standby


def promote(standby: PostgresServer) -> None:
    """Make a standby the primary of its own timeline."""
    assert standby.execute("SELECT pg_promote(wait => true)") == [(True,)]
