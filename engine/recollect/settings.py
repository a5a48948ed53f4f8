"""Settings of an engine. The environment is read here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, structs

from recollect.checks import check_count, check_finite, shown
from recollect.errors import InvalidInput
from recollect.policies import Consolidation, WritePolicy
from recollect.profiles import OPTIONS, PROFILES, Profile, resolve_profile
from recollect.remote.address import PROVIDERS, ModelAddress, provider_url
from recollect.settings_files import adopt_foreign, check_keys, read_table, without_others

__all__ = ["Settings", "default_path", "environment_settings", "language_model_address", "named_embedder"]

Built = TypeVar("Built")

# What the users of a profile's system are used to from its writes.
_WRITE_POLICIES = {
    "reeve": WritePolicy(merge_strategy="latest", topic_cosine=0.92),
    "hermes": WritePolicy(duplicate_cosine=0.98, recognise_recalled=True, contradiction_cosine=0.6),
}


def default_path() -> str:
    """Where a memory without a path lives: RECOLLECT_DB, else `memory.db` in the user's data directory."""
    from pathlib import Path

    from platformdirs import user_data_path

    if path := os.environ.get("RECOLLECT_DB"):
        return path
    folder: Path = user_data_path("recollect", appauthor=False)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder / "memory.db")


def environment_settings() -> Settings:
    """The settings of the file that RECOLLECT_SETTINGS names; without it the defaults."""
    path = os.environ.get("RECOLLECT_SETTINGS")
    return Settings.load(path) if path else Settings()


def language_model_address(
    base_url: str | None = None, model: str | None = None, api_key: str | None = None
) -> ModelAddress | None:
    """The language model named by these and, where they are None, by RECOLLECT_LLM_BASE_URL, RECOLLECT_LLM_MODEL and
    RECOLLECT_LLM_API_KEY; None when neither URL nor model is there, InvalidInput when one of them is missing.
    """
    base_url = base_url or os.environ.get("RECOLLECT_LLM_BASE_URL") or None
    model = model or os.environ.get("RECOLLECT_LLM_MODEL") or None
    if base_url is None and model is None:
        return None
    if base_url is None or model is None:
        name = "RECOLLECT_LLM_BASE_URL" if base_url is None else "RECOLLECT_LLM_MODEL"
        raise InvalidInput(f"{name} is not set: a language model needs a base URL and a model's name")
    key = api_key or os.environ.get("RECOLLECT_LLM_API_KEY") or None
    return ModelAddress(base_url=base_url, model=model, api_key=key)


def remote_embedder_address() -> ModelAddress | None:
    """The embedder that EMBEDDING_PROVIDER ("openai", "ollama" or a base URL) and EMBEDDING_MODEL name, None without
    a provider. EMBEDDING_BASE_URL moves a provider elsewhere; EMBEDDING_API_KEY is its key, for OpenAI's also
    OPENAI_API_KEY.
    """
    provider = os.environ.get("EMBEDDING_PROVIDER")
    if not provider:
        return None
    base_url = provider_url(provider, "EMBEDDING_PROVIDER")
    model = os.environ.get("EMBEDDING_MODEL")
    if not model:
        raise InvalidInput(
            "EMBEDDING_MODEL is not set: name the model of EMBEDDING_PROVIDER, as 'text-embedding-3-small'"
        )
    key = os.environ.get("EMBEDDING_API_KEY")
    # OpenAI's key is sent to OpenAI alone, or where the user says that OpenAI is.
    is_openai = base_url == provider_url("openai")
    if is_openai:
        key = key or os.environ.get("OPENAI_API_KEY")
    base_url = os.environ.get("EMBEDDING_BASE_URL") or base_url
    if is_openai and not key:
        raise InvalidInput("EMBEDDING_PROVIDER is openai and there is no key: set EMBEDDING_API_KEY or OPENAI_API_KEY")
    return ModelAddress(base_url=base_url, model=model, api_key=key or None)


def named_embedder(
    model: str | None,
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    timeout_seconds: float = 30.0,
    batch_size: int = 64,
) -> str | ModelAddress:
    """What an embedder is loaded from: None is what `Settings(embedder=None)` is, a bundled model's name and a folder
    are themselves, and all else is a model over HTTP, at `api_base` or its provider's: "ollama/nomic-embed-text", or
    OpenAI's "text-embedding-3-small". A key that is not given is EMBEDDING_API_KEY, for OpenAI also OPENAI_API_KEY.

    Raises InvalidInput for a provider that is not known, and where OpenAI is meant and there is no key.
    """
    from pathlib import Path

    import recollect_models

    if model is None:
        return Settings().embedder_spec
    bundled = ("default", "instant", "none", *(name.lower() for name in recollect_models.NAMES))
    if api_base is None and (model.lower() in bundled or Path(model).expanduser().is_dir()):
        return model
    provider, slash, name = model.partition("/")
    if not slash or provider.lower() not in PROVIDERS:
        if slash and api_base is None:
            raise InvalidInput(
                f"the embedder {shown(model)} is no folder, and its provider is none of {', '.join(PROVIDERS)}: "
                "give api_base, the base URL where it is served"
            )
        provider, name = "openai", model
    base_url = provider_url(provider) if api_base is None else api_base.rstrip("/")
    if provider.lower() == "ollama" and base_url.count("/") == 2:
        base_url += "/v1"  # what Ollama's own clients are given has no path
    key = api_key or os.environ.get("EMBEDDING_API_KEY") or None
    if base_url == PROVIDERS["openai"]:
        key = key or os.environ.get("OPENAI_API_KEY") or None
        if key is None:
            raise InvalidInput(
                f"the embedder {shown(model)} is OpenAI's and there is no key: give api_key, or set OPENAI_API_KEY; "
                "'default' is the bundled model, which needs none"
            )
    return ModelAddress(
        base_url=base_url, model=name, api_key=key, timeout_seconds=timeout_seconds, batch_size=batch_size
    )


class Settings(Struct, frozen=True, kw_only=True):
    """How an engine runs. Every field has a measured or safe default.

    - embedder: "default", "instant" (token vectors without a network), "none" (keyword only, or vectors given by the
      caller), a folder with an ONNX model, or None for the environment's RECOLLECT_EMBEDDER, else
      EMBEDDING_PROVIDER's, else "default".
    - tier: "standard" is keyword recall only, no model loaded: embedder "none" by another name; "enhanced" is what
      `embedder` says.
    - durability: "full" survives power loss once `remember` returns; "normal" survives a killed process.
    - profile: the profile a recall uses unless it names one, by name or as a `Profile`.
    - busy_timeout_ms: how long a write waits for another process's lock.
    - max_text_chars: longer texts are refused.
    - max_document_bytes, max_document_chars: larger documents, and those with more text, are not ingested.
    - document_memory_mb, document_seconds: what the process that parses PDF, DOCX and HTML may use for one document.
    - index: "memory" answers from RAM; "cold" answers from SQL; "once", for a process that asks once, from RAM where
      the store is small or has its sidecar, else from SQL; "auto" is memory.
    - sidecar: keep the index of a large store in a file beside it, `<database>-index`, from which it is ready several
      times sooner. The file is derived: it can be deleted at any time, and `forget` deletes it.
    - low_memory: rescoring vectors stay on disk, and with the sidecar all that is not written to; some recalls wait
      for the disk.
    - compile_kernels: compile the JIT kernels in the background if this machine has not yet; until then the
      python backend answers.
    - query_cache_size: query embeddings kept in memory.
    - write: what writing does besides storing; None is what the profile implies: "reeve" keeps the latest memory on a
      topic, "hermes" recognises what it has and reports contradictions, the others do nothing.
    - consolidation: consolidate episodes by themselves, after each `threshold` new ones of an agent; None does not.
    - token_codes: keep a code of 48 bytes for each telling token of what is written, by which recall takes a second
      look at its shortlist. `reembed` adds the codes to what is stored, or removes them.
    """

    embedder: str | None = None
    tier: Literal["standard", "enhanced"] = "enhanced"
    durability: Literal["full", "normal"] = "full"
    profile: str | Profile = "default"
    busy_timeout_ms: int = 10_000
    max_text_chars: int = 1_000_000
    max_document_bytes: int = 100_000_000
    max_document_chars: int = 50_000_000
    document_memory_mb: int = 1024
    document_seconds: float = 60.0
    index: Literal["auto", "memory", "cold", "once"] = "auto"
    sidecar: bool = True
    low_memory: bool = False
    compile_kernels: bool = True
    query_cache_size: int = 512
    token_codes: bool = False
    write: WritePolicy | None = None
    consolidation: Consolidation | None = None

    def __post_init__(self) -> None:
        if self.tier not in ("standard", "enhanced"):
            raise InvalidInput(f"Settings.tier is {shown(self.tier)}: 'standard' or 'enhanced'")
        if self.tier == "standard" and self.embedder not in (None, "none"):
            raise InvalidInput(
                f"Settings.tier 'standard' loads no embedder, but embedder is {shown(self.embedder)}: leave one out"
            )
        for name, kind in (("write", WritePolicy), ("consolidation", Consolidation)):
            if not isinstance(getattr(self, name), kind | None):
                raise InvalidInput(
                    f"Settings.{name} is {shown(getattr(self, name))}: give {kind.__name__}(...) or None"
                )
        if self.durability not in ("full", "normal"):
            raise InvalidInput(f"Settings.durability is {shown(self.durability)}: 'full' or 'normal'")
        if self.index not in ("auto", "memory", "cold", "once"):
            raise InvalidInput(f"Settings.index is {shown(self.index)}: 'auto', 'memory', 'cold' or 'once'")
        for name in ("sidecar", "low_memory", "compile_kernels", "token_codes"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"Settings.{name} is {shown(getattr(self, name))}: True or False")
        resolve_profile(self.profile)
        if self.embedder is not None and (not isinstance(self.embedder, str) or not self.embedder):
            raise InvalidInput(f"Settings.embedder is {shown(self.embedder)}: a name, a folder, 'none', or None")
        if check_count(self.busy_timeout_ms, "Settings.busy_timeout_ms", minimum=0) >= 2**31:
            raise InvalidInput(f"Settings.busy_timeout_ms is {self.busy_timeout_ms}: at most {2**31 - 1}")
        for name in ("max_text_chars", "max_document_bytes", "max_document_chars", "document_memory_mb"):
            check_count(getattr(self, name), f"Settings.{name}")
        check_finite(self.document_seconds, "Settings.document_seconds", minimum=0.001)
        check_count(self.query_cache_size, "Settings.query_cache_size", minimum=0)

    @property
    def write_policy(self) -> WritePolicy:
        """What `remember` does besides storing: the setting, else what the profile implies."""
        return self.write or _implied(self.profile)

    @property
    def embedder_spec(self) -> str | ModelAddress:
        """The embedder to load: the setting, else RECOLLECT_EMBEDDER, else EMBEDDING_PROVIDER's, else "default";
        "none" in tier "standard".
        """
        if self.tier == "standard":
            return "none"
        return self.embedder or os.environ.get("RECOLLECT_EMBEDDER") or remote_embedder_address() or "default"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Settings:
        """Read a .toml, .json (with comments) or .yaml file.

        It holds fields of `Settings`; `profile` is a name or a table of choices with a `name`, `write` and
        `consolidation` are tables, and what they leave out stands as the profile implies. Reeve's `memorySearch` and
        Hermes' `memory.recall` are read as those systems write them, and set their profile.

        Raises InvalidInput, which names the file, the key's path, the value and what is allowed.
        """
        try:
            return cls.from_dict(read_table(path))
        except InvalidInput as fault:
            at = os.fspath(path)
            raise InvalidInput(str(fault) if str(fault).startswith(str(at)) else f"{at}: {fault}") from None

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Settings:
        """The settings of a table, in the form of `load`; `to_dict` gives one."""
        known = (*cls.__struct_fields__, "memorySearch", "memory")
        given, origins = adopt_foreign(check_keys(without_others(table, known), "", known))

        def built(make: Callable[..., Built], section: str, choices: Mapping[str, Any]) -> Built:
            """What the choices make; a refusal begins with the path of the one that is refused by itself too."""
            try:
                return make(**choices)
            except InvalidInput as fault:
                for key, value in choices.items():
                    try:
                        make(**{key: value})
                    except InvalidInput as own:
                        path = origins.get((section, key), f"{section}.{key}".lstrip("."))
                        raise InvalidInput(f"{path}: {own}") from None
                raise InvalidInput(f"{section}: {fault}" if section else str(fault)) from None

        fields = dict(given)
        profile: Any = fields.get("profile", "default")
        if isinstance(profile, Mapping):
            choices = dict(check_keys(profile, "profile", ("name", *OPTIONS)))
            named = built(
                lambda name="default": resolve_profile(name), "profile", {"name": choices.pop("name", "default")}
            )
            profile = built(lambda **changes: named.override(changes), "profile", choices)
            fields["profile"] = profile
        if fields.get("write") is not None:
            changes = check_keys(fields["write"], "write", WritePolicy.__struct_fields__)
            implied = _implied(built(lambda profile: resolve_profile(profile), "", {"profile": profile}))
            fields["write"] = built(lambda **changes: structs.replace(implied, **changes), "write", changes)
        if fields.get("consolidation") is not None:
            changes = check_keys(fields["consolidation"], "consolidation", Consolidation.__struct_fields__)
            fields["consolidation"] = built(Consolidation, "consolidation", changes)
        return built(cls, "", fields)

    def to_dict(self) -> dict[str, Any]:
        """Every setting that is not its default, as `from_dict` and a JSON or YAML file take it."""
        table = _changes(self, Settings())
        if isinstance(self.profile, Profile):
            table["profile"] = {"name": self.profile.name, **_changes(self.profile, PROFILES[self.profile.name])}
        if self.write is not None:
            table["write"] = _changes(self.write, _implied(self.profile))
        if self.consolidation is not None:
            table["consolidation"] = structs.asdict(self.consolidation)
        return table


def _implied(profile: str | Profile) -> WritePolicy:
    return _WRITE_POLICIES.get(resolve_profile(profile).name, WritePolicy())


def _changes(value: Struct, base: Struct) -> dict[str, Any]:
    standing = structs.asdict(base)
    return {name: held for name, held in structs.asdict(value).items() if held != standing[name]}
