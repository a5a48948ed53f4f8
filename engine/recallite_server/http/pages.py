"""The page: its files, and what it asks for besides the operations."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recallite._version import __version__
from recallite.doors.operations import PREFIX
from recallite.errors import NotFound
from recallite_server.http.access import Access
from recallite_server.http.batching import InThread
from recallite_server.http.failures import Refused, json_response
from recallite_server.memory_map import MemoryMap

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip


def routes(access: Access, map: MemoryMap, in_thread: InThread[Response]) -> Iterator[Route]:
    """The page's routes; `in_thread` calls a function in a thread."""
    folder = files("recallite_server.http") / "page"
    contents = {
        entry.name: entry.read_bytes() for entry in folder.iterdir() if PurePosixPath(entry.name).suffix in _MEDIA_TYPES
    }

    async def part(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in contents:
            raise Refused(404, f"there is no file {name!r}", error=NotFound)
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
        return Response(contents[name], headers=headers, media_type=_MEDIA_TYPES[PurePosixPath(name).suffix])

    async def state(request: Request) -> Response:
        _, scope, grant = access.memory(request)
        return json_response({"read_only": grant.read_only, "scope": scope, "version": __version__})

    async def points(request: Request) -> Response:
        memory, _, _ = access.memory(request)
        return await in_thread(lambda: json_response(map.points(memory).to_dict()))

    yield Route("/", part)
    yield Route("/page/{name}", part)
    yield Route(f"{PREFIX}/map", points)
    yield Route(f"{PREFIX}/page/state", state)
