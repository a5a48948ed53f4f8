"""The page: its files, and what it asks for besides the operations."""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from msgspec import structs

from recallite._version import __version__
from recallite.doors.http.access import Access, may_write
from recallite.doors.http.batching import InThread
from recallite.doors.http.failures import Refused, json_response
from recallite.doors.operations import PREFIX
from recallite.memory import Memory
from recallite.review.map.memory_map import MemoryMap
from recallite.system.logs import logger

_log = logger(__name__)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip


def add_to(app: FastAPI, access: Access, map: MemoryMap, in_thread: InThread[Response]) -> None:
    """Add the page's routes to an application; `in_thread` calls a function in a thread."""
    folder = files("recallite.doors.http") / "page"
    contents = {
        each.name: each.read_bytes() for each in folder.iterdir() if PurePosixPath(each.name).suffix in _MEDIA_TYPES
    }

    def file(name: str) -> Response:
        if name not in contents:
            raise Refused(404, f"there is no file {name!r}", error="NotFound")
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
        return Response(contents[name], headers=headers, media_type=_MEDIA_TYPES[PurePosixPath(name).suffix])

    async def index() -> Response:
        return file("index.html")

    async def part(name: str) -> Response:
        return file(name)

    async def state(request: Request) -> Response:
        _, scope, grant = access.memory(request)
        return json_response({"read_only": grant.read_only, "scope": scope, "version": __version__})

    async def points(request: Request) -> Response:
        memory, scope, _ = access.memory(request)
        return await in_thread(lambda: json_response(_points(map, memory, scope)))

    async def compute(request: Request) -> Response:
        if access.memory(request)[1] != "/":
            raise Refused(403, "the map is of the whole store: the token is for a scope", error="AccessDenied")
        return await in_thread(lambda: json_response(map.start()))

    app.add_api_route(
        f"{PREFIX}/map", compute, methods=["POST"], dependencies=[Depends(may_write)], include_in_schema=False,
        response_model=None,
    )  # fmt: skip
    for path, endpoint in (
        ("/", index),
        (f"{PREFIX}/map", points),
        ("/page/{name}", part),
        (f"{PREFIX}/page/state", state),
    ):
        app.add_api_route(path, endpoint, methods=["GET"], include_in_schema=False, response_model=None)


def _points(map: MemoryMap, memory: Memory, scope: str) -> dict[str, Any]:
    """The points of what a request may see. Counts of the whole store are for who may see all of it."""
    state = map.state()
    if state.failure is not None:
        _log.error("the map could not be computed: %s", state.failure)
        state = structs.replace(state, failure="the map could not be computed; the log of the server says why")
    if state.status == "failed" and state.placed:
        state = structs.replace(state, status="ready")  # the previous map is still shown
    if state.status != "ready":
        return (state if scope == "/" else structs.replace(state, placed=0, added=0)).to_dict()
    points = map.points(memory)
    told = state if scope == "/" else structs.replace(state, placed=len(points), added=0)
    return {**told.to_dict(), **points.to_dict()}
