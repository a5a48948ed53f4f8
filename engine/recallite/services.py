"""The services of a memory, each declared in one line.

To add one, write its file, with its class and the asynchronous twin of it, and a line in `Services`: `Memory` and
`AsyncMemory` then have it as an attribute, and the tool and the commands that the line names are offered.
"""

from __future__ import annotations

import pkgutil
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

if TYPE_CHECKING:
    from recallite.asynchrony import AsyncHandle
    from recallite.knowledge.knowledge import AsyncKnowledge, Knowledge
    from recallite.tiers.consolidator import AsyncConsolidator, Consolidator
    from recallite.tiers.episodes import AsyncEpisodes, Episodes
    from recallite.tiers.experience import AsyncExperience, Experience
    from recallite.tiers.procedures import AsyncProcedures, Procedures
    from recallite.tiers.semantic import AsyncSemantic, Semantic
    from recallite.tiers.sessions import AsyncSessions, Sessions
    from recallite.tiers.working import AsyncWorking, Working
    from recallite.upkeep import Upkeep


S = TypeVar("S")
A = TypeVar("A")


class Mounted(Generic[S, A]):
    """A service as an attribute: an S of a `Memory`, its asynchronous twin A of an `AsyncMemory`.

    `kind` is S as "module:Class"; its twin is AsyncClass in the same module. `tool` is the module of `recallite.tools`
    whose TOOL models are offered, `commands` the group of commands as "module:name" in `recallite.cli`. A handle has
    one instance of each service. Modules are imported when they are needed: `recallite --help` loads none.
    """

    def __init__(self, kind: str, *, tool: str | None = None, commands: str | None = None) -> None:
        self._kind = kind
        self._tool = tool
        self._commands = commands

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, handle: None, owner: type) -> Self: ...
    @overload
    def __get__(self, handle: AsyncHandle[Any], owner: type) -> A: ...
    @overload
    def __get__(self, handle: Upkeep, owner: type) -> S: ...
    def __get__(self, handle: Any, owner: type) -> Any:
        from recallite.asynchrony import AsyncHandle

        if handle is None:
            return self
        kept = vars(handle)  # where Python finds it from the second time on, without asking here
        if self._name not in kept:
            if isinstance(handle, AsyncHandle):
                made: Any = self.twin(handle, lambda memory: self.__get__(memory, type(memory)))
            else:
                made = self.kind(handle._engine, handle._scope)
            kept.setdefault(self._name, made)
        return kept[self._name]

    @property
    def kind(self) -> Any:
        """The class S."""
        return pkgutil.resolve_name(self._kind)

    @property
    def twin(self) -> Any:
        """The class A."""
        return pkgutil.resolve_name(self._kind.replace(":", ":Async"))

    @property
    def tool(self) -> Any:
        """The tool for models; None where there is none."""
        return self._tool and pkgutil.resolve_name(f"recallite.tools.{self._tool}:TOOL")

    @property
    def commands(self) -> Any:
        """The group of commands; None where there is none."""
        return self._commands and pkgutil.resolve_name(f"recallite.cli.{self._commands}")


class Services:
    """What `Memory` and `AsyncMemory` have besides their own methods."""

    working: Mounted[Working, AsyncWorking] = Mounted("recallite.tiers.working:Working")
    """A few items in RAM, which a policy evicts or promotes."""
    semantic: Mounted[Semantic, AsyncSemantic] = Mounted("recallite.tiers.semantic:Semantic")
    """Lasting knowledge: records of kind "memory"."""
    episodes: Mounted[Episodes, AsyncEpisodes] = Mounted("recallite.tiers.episodes:Episodes", commands="tiers:episodes")
    """A log of events, and snapshots of sessions."""
    procedures: Mounted[Procedures, AsyncProcedures] = Mounted(
        "recallite.tiers.procedures:Procedures", commands="tiers:procedures"
    )
    """Named ways to do things, and their success rates."""
    sessions: Mounted[Sessions, AsyncSessions] = Mounted(
        "recallite.tiers.sessions:Sessions", tool="session", commands="sessions:sessions"
    )
    """Conversations, stored message by message."""
    experience: Mounted[Experience, AsyncExperience] = Mounted(
        "recallite.tiers.experience:Experience", tool="experience", commands="tiers:experience"
    )
    """Which tools worked for which tasks, and what fixed which errors."""
    consolidator: Mounted[Consolidator, AsyncConsolidator] = Mounted("recallite.tiers.consolidator:Consolidator")
    """Prunes episodes and extracts facts from them."""
    knowledge: Mounted[Knowledge, AsyncKnowledge] = Mounted(
        "recallite.knowledge.knowledge:Knowledge", tool="knowledge", commands="knowledge:knowledge"
    )
    """Documents, searched by passage."""


SERVICES: dict[str, Mounted[Any, Any]] = {
    name: mounted for name, mounted in vars(Services).items() if isinstance(mounted, Mounted)
}
