"""Settings of an engine."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import structs

from recallite.model.configuration import Count, NonNegative, Section, Setting, check_keys, from_table, to_table
from recallite.model.environment import default_embedder
from recallite.model.model_address import ModelAddress
from recallite.model.policies import Consolidation, WritePolicy
from recallite.model.profiles import Profile, resolve_profile

# What users of a profile's system expect of its writes.
_WRITE_POLICIES = {
    "reeve": WritePolicy(merge_strategy="latest", topic_cosine=0.92, supersede_confidence=None),
    "hermes": WritePolicy(supersede_confidence=None, recognise_recalled=True),
}
_PLAIN_POLICY = WritePolicy()


def _check_profile(value: object, name: str) -> object:
    resolve_profile(value, name)
    return value


class Warm(Section, frozen=True, kw_only=True):
    """The resident process that keeps stores loaded for the command line and MCP hosts.

    - use: Whether the resident process opens this store; else each process opens the store itself.
    - idle_minutes: Minutes without use after which it closes the store. It ends when it has none; 0 keeps the store.
    """

    use: bool = True
    idle_minutes: NonNegative = 30.0


class Settings(Section, frozen=True, kw_only=True):
    """Settings of an engine. Every field has a measured or safe default.

    - embedder: `default`, `instant` (token vectors, no network), `none` (keyword search, or vectors that the caller
      gives), a folder with an ONNX model, or a model over HTTP with its provider (`ollama/nomic-embed-text`,
      `voyage/voyage-3`). None is the environment's, else `default`.
    - durability: `full` survives power loss once `remember` returns; `normal` survives a killed process.
    - profile: Profile of a recall that names none: its name, or a table with `name` and changes.
    - busy_timeout_ms: How long a write waits for another process's lock.
    - max_text_chars: Longer texts are refused.
    - index_snapshot: Keep a snapshot of a large store's index in `<database>-index`, or for a server in the user's
      cache folder, from which the index loads several times faster. The file is derived: it can be deleted at any time,
      and `forget` deletes it.
    - key_file: File whose first line is the key of an encrypted store, where `Memory` is given none. None is the
      environment's RECALLITE_KEY, else its RECALLITE_KEY_FILE.
    - token_codes: Store a code of 16 bytes for each content word, at most 64 per record, for token-level reranking:
      about 0.3 KB per chat turn. `reembed` adds the codes to what is stored, or removes them. Models over HTTP
      give none.
    - vectors: How the vectors of a new store are kept. `float16` takes half of the space, 0.8 KB less of a memory with
      384 components, and changes cosines by less than 0.001. A store of the other type refuses to be written; `rebuild`
      converts it, to `float16` for good.
    - fts5: Keep an FTS5 table of the texts in the file, for full-text search in SQL; recall does not use it. A store
      gets it when it is opened so, and keeps it until `rebuild` without this setting. A write puts four more pages into
      the WAL for it.
    - write: What writing does to similar records. None is what the profile implies: `reeve` keeps the latest memory of
      a topic, `hermes` recognises recalled text; both report contradictions without superseding anything.
    - consolidation: Consolidate episodes automatically after `threshold` new ones of an agent; None does not.
    - warm: Whether and how long the resident process keeps the store open. None is its defaults.
    """

    embedder: Annotated[str | None, Setting(environment="RECALLITE_EMBEDDER")] = None
    durability: Literal["full", "normal"] = "full"
    profile: Annotated[str | Profile, Setting(check=_check_profile)] = "default"
    busy_timeout_ms: Annotated[int, Setting(minimum=0, maximum=2**31 - 1)] = 10_000
    max_text_chars: Count = 1_000_000
    index_snapshot: bool = True
    key_file: Annotated[str | None, Setting(environment="RECALLITE_KEY_FILE")] = None
    token_codes: bool = True
    vectors: Literal["float32", "float16"] = "float32"
    fts5: bool = False
    write: WritePolicy | None = None
    consolidation: Consolidation | None = None
    warm: Warm | None = None

    @property
    def write_policy(self) -> WritePolicy:
        """The write policy: the setting, else what the profile implies."""
        return self.write or _implied(self.profile)

    @property
    def embedder_spec(self) -> str | ModelAddress:
        """The embedder to load: the setting, else the environment's, else "default"."""
        return self.embedder or default_embedder()

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Settings":
        """The settings of a table; `to_dict` gives one.

        `profile` is a name, or a table of changes with a `name`. `write` is a table; what it leaves out is as the
        profile implies. Raises InvalidInput, which begins with the key that is wrong.
        """
        settings = dict(check_keys(table, "", cls.__struct_fields__))
        profile: Any = settings.get("profile", "default")
        if isinstance(profile, Mapping):
            named = resolve_profile(profile.get("name", "default"), "profile.name")
            changes = dict(check_keys(profile, "profile", type(named).__struct_fields__))
            changes.pop("name", None)
            profile = from_table(type(named), changes, "profile", make=lambda **values: named.override(values))
            settings["profile"] = profile
        if settings.get("write") is not None:
            implied = partial(structs.replace, _implied(profile))
            settings["write"] = from_table(WritePolicy, settings["write"], "write", make=implied)
        return from_table(cls, settings)

    def to_dict(self) -> dict[str, Any]:
        """Every setting that is not its default, as `from_dict` and a file take it."""
        table = to_table(self, Settings())
        if isinstance(self.profile, Profile):
            table["profile"] = {"name": self.profile.name, **to_table(self.profile, resolve_profile(self.profile.name))}
        if self.write is not None:
            table["write"] = to_table(self.write, _implied(self.profile))
        return table


def _implied(profile: str | Profile) -> WritePolicy:
    return _WRITE_POLICIES.get(resolve_profile(profile).name, _PLAIN_POLICY)
