"""A socket by which the processes of one user reach each other: a Unix socket, on Windows a port of this machine.

Nobody else may enter the folder of the Unix socket, and each side asks the system whose process the other one is. For a
port there is a file with a token, which a client has to send.
"""

from __future__ import annotations

import _socket  # importing socket takes 5 ms, which every hook would wait
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

_BACKLOG = 128
_XUCRED_BYTES = 76


def is_private(folder: str) -> bool:
    """Whether a folder exists, belongs to this user, and nobody else may enter it."""
    if sys.platform == "win32":
        return os.path.isdir(folder)  # it is below the user's profile, which others cannot enter
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def listen(path: str) -> tuple[socket, str]:
    """A socket that listens at a path, in place of what is there, and the token of its clients; "" for a Unix socket.

    Raises OSError.
    """
    import socket

    if os.path.lexists(path):
        os.unlink(path)
    token = ""
    if sys.platform == "win32":
        listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    else:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            import secrets

            from recallite.system.files import create_private

            token = secrets.token_urlsafe(32)
            with open(create_private(path), "w", encoding="ascii") as file:
                file.write(f"{listener.getsockname()[1]} {token}")
        else:
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener, token


def connect(path: str, timeout_seconds: float) -> tuple[_socket.socket, str]:
    """A connection to the process that listens at a path, and the token to send.

    Raises OSError if there is none, and PermissionError if it is another user's.
    """
    if sys.platform == "win32":
        import socket

        with open(path, encoding="ascii") as file:
            port, _, token = file.read().partition(" ")
        if not port.isdecimal() or not token:
            raise ConnectionRefusedError(f"{path} names no port and token")
        return socket.create_connection(("127.0.0.1", int(port)), timeout_seconds), token
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_seconds)
        connection.connect(path)
        if not is_own(connection):
            raise PermissionError(f"{path} is another user's")
    except OSError:
        connection.close()
        raise
    return connection, ""


def lock_of(path: str) -> str:
    """Return the file that the process that listens at a path has locked."""
    return f"{os.path.splitext(path)[0]}.lock"


def remove_dead(path: str) -> None:
    """Remove the file of a port if its process has gone, however it ended: Windows takes seconds to refuse a port."""
    if sys.platform != "win32" or not os.path.exists(path):
        return
    from contextlib import suppress
    from pathlib import Path

    from recallite.system.files import FolderLock

    with suppress(OSError), FolderLock(Path(lock_of(path))).held(0) as is_free:
        if is_free:
            os.unlink(path)


def is_own(connection: _socket.socket) -> bool:
    """Whether the process at the other end of a Unix socket is this user's; True if the system does not say."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    elif sys.platform == "darwin":
        credentials = connection.getsockopt(0, _socket.LOCAL_PEERCRED, _XUCRED_BYTES)
    else:
        return True
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.geteuid()  # the second of its integers
