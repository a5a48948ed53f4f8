"""Settings of an engine. The environment is read here and nowhere else."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, structs

from recollect.checks import check_choice, check_count, check_finite, check_name, shown
from recollect.errors import InvalidInput
from recollect.policies import Consolidation, WritePolicy
from recollect.profiles import OPTIONS, PROFILES, Profile, resolve_profile
from recollect.remote.address import PROVIDERS, ROUTED, ModelAddress, address_of, provider_url, require
from recollect.settings_files import adopt_foreign, check_keys, naming, read_table, without_others

__all__ = [
    "Settings",
    "default_path",
    "environment_settings",
    "key_in",
    "language_model_address",
    "named_embedder",
    "named_key",
    "named_language_model",
    "new_environment_key",
]

Built = TypeVar("Built")

# A name that begins so needs no "openai/" before it, as memweave takes it.
_OPENAI_EMBEDDERS = "text-embedding-"
# What the users of a profile's system are used to from its writes.
_WRITE_POLICIES = {
    "reeve": WritePolicy(merge_strategy="latest", topic_cosine=0.92),
    "hermes": WritePolicy(duplicate_cosine=0.98, recognise_recalled=True, contradiction_cosine=0.6),
}

_OLD_TIERS: dict[str, Literal["standard", "enhanced"]] = {"1": "standard", "2": "enhanced"}


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


def named_key(key_file: str | None = None) -> str | None:
    """The key of an encrypted store: that in `key_file`, else RECOLLECT_KEY, else that in the file RECOLLECT_KEY_FILE;
    None without any. Raises InvalidInput where such a file has none.
    """
    if key_file is None and (key := os.environ.get("RECOLLECT_KEY")):
        return key
    path = key_file or os.environ.get("RECOLLECT_KEY_FILE")
    return None if not path else key_in(path)


def new_environment_key() -> str | None:
    """The key that RECOLLECT_NEW_KEY gives to `recollect rekey`."""
    return os.environ.get("RECOLLECT_NEW_KEY") or None


def key_in(path: str) -> str:
    """The key in a file: its first line. Raises InvalidInput where there is none; the message shows nothing of it."""
    from pathlib import Path

    try:
        lines = Path(path).expanduser().read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is no text in UTF-8: give a file whose first line is the key") from None
    except (OSError, RuntimeError, ValueError) as fault:
        raise InvalidInput(f"the key in {path} cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    if not lines or not lines[0]:
        raise InvalidInput(f"the first line of {path} is empty: write the key there")
    return lines[0]


def language_model_address(
    base_url: str | None = None, model: str | None = None, api_key: str | None = None
) -> ModelAddress | None:
    """The language model named by these and, where they are None, by RECOLLECT_LLM_BASE_URL, RECOLLECT_LLM_MODEL and
    RECOLLECT_LLM_API_KEY; None when neither URL nor model is there, InvalidInput when one of them is missing. A model
    that has its provider before its name needs no URL.
    """
    base_url = base_url or os.environ.get("RECOLLECT_LLM_BASE_URL") or None
    model = model or os.environ.get("RECOLLECT_LLM_MODEL") or None
    if base_url is None and model is None:
        return None
    key = api_key or os.environ.get("RECOLLECT_LLM_API_KEY") or None
    if base_url is None and model is not None and address_of(model) is not None:
        return named_language_model(model, api_key=key)
    if base_url is None or model is None:
        name = "RECOLLECT_LLM_BASE_URL" if base_url is None else "RECOLLECT_LLM_MODEL"
        raise InvalidInput(f"{name} is not set: a language model needs a base URL and a model's name")
    return ModelAddress(base_url=base_url, model=model, api_key=key)


def named_language_model(name: str, *, api_base: str | None = None, api_key: str | None = None) -> ModelAddress:
    """The language model of a name: with its provider before it ("gemini/gemini-2.0-flash", "ollama/llama3.2"), any at
    `api_base`, else OpenAI's ("gpt-4o-mini"). What is not given of OpenAI's is OPENAI_BASE_URL and OPENAI_API_KEY.

    Raises InvalidInput where OpenAI is meant and there is neither.
    """
    provider, slash, rest = check_name(name, "model").partition("/")
    if api_base is None and (not slash or provider.lower() == "openai"):
        api_base = os.environ.get("OPENAI_BASE_URL") or PROVIDERS["openai"]
        api_key = api_key or os.environ.get("OPENAI_API_KEY") or None
        if api_key is None and api_base == PROVIDERS["openai"]:
            raise InvalidInput(
                f"the language model {shown(name)} is OpenAI's and there is no key: give api_key, or set "
                "OPENAI_API_KEY, or OPENAI_BASE_URL where it is served elsewhere"
            )
        return ModelAddress(base_url=api_base, model=rest if slash else name, api_key=api_key)
    address = address_of(name, api_base=api_base, api_key=api_key)
    if address is None:
        known = ", ".join((*PROVIDERS, *ROUTED))
        raise InvalidInput(
            f"the provider of the language model {shown(name)} is none of {known}: give the base URL where it is served"
        )
    return address


def remote_embedder_address() -> ModelAddress | None:
    """The embedder that EMBEDDING_PROVIDER (one of `PROVIDERS` or `ROUTED`, or a base URL) and EMBEDDING_MODEL name,
    None without a provider. EMBEDDING_BASE_URL moves a provider elsewhere; EMBEDDING_API_KEY is its key, for OpenAI's
    also OPENAI_API_KEY.
    """
    provider = (os.environ.get("EMBEDDING_PROVIDER") or "").strip()
    if not provider:
        return None
    routed = provider.lower() in ROUTED
    base_url = "" if routed else provider_url(provider, "EMBEDDING_PROVIDER")
    model = os.environ.get("EMBEDDING_MODEL")
    if not model:
        raise InvalidInput(
            "EMBEDDING_MODEL is not set: name the model of EMBEDDING_PROVIDER, as 'text-embedding-3-small'"
        )
    key = os.environ.get("EMBEDDING_API_KEY") or None
    # OpenAI's key is sent to OpenAI alone, or where the user says that OpenAI is.
    is_openai = base_url == provider_url("openai")
    if is_openai:
        key = key or os.environ.get("OPENAI_API_KEY")
    base_url = os.environ.get("EMBEDDING_BASE_URL") or base_url
    if is_openai and not key:
        raise InvalidInput("EMBEDDING_PROVIDER is openai and there is no key: set EMBEDDING_API_KEY or OPENAI_API_KEY")
    if routed:
        return address_of(f"{provider}/{model}", api_base=base_url or None, api_key=key)
    return ModelAddress(base_url=base_url, model=model, api_key=key)


def _bundled_embedders() -> tuple[str, ...]:
    """The names of embedders that need nothing else."""
    try:
        import recollect_models
    except ImportError:
        return "default", "instant", "none"
    return tuple(dict.fromkeys(("default", "instant", "none", *recollect_models.NAMES)))


def named_embedder(
    model: str | None,
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    timeout_seconds: float = 30.0,
    batch_size: int = 64,
) -> str | ModelAddress:
    """What an embedder is loaded from: None is what `Settings(embedder=None)` is, a bundled model's name and a folder
    are themselves, and all else is a model over HTTP, at `api_base` or its provider's: "ollama/nomic-embed-text",
    "voyage/voyage-3", or OpenAI's "text-embedding-3-small". A key that is not given is EMBEDDING_API_KEY, for OpenAI
    also OPENAI_API_KEY. A path with a folder in it may name one that is not there now.

    Raises InvalidInput for what is none of these, and where OpenAI is meant and there is no key; EmbedderMissing where
    the library that asks the provider is not installed.
    """
    from pathlib import Path

    options: dict[str, Any] = {"timeout_seconds": timeout_seconds, "batch_size": batch_size}
    if model is None:
        spec = Settings().embedder_spec
        return structs.replace(spec, **options) if isinstance(spec, ModelAddress) else named_embedder(spec, **options)
    bundled = _bundled_embedders()
    if api_base is None and (model.lower() in map(str.lower, bundled) or Path(model).expanduser().is_dir()):
        return model
    if api_base is None and model.lower().startswith(_OPENAI_EMBEDDERS):
        model = f"openai/{model}"
    key = api_key or os.environ.get("EMBEDDING_API_KEY") or None
    address = address_of(model, api_base=api_base, api_key=key, **options)
    if address is None:
        if Path(model).is_absolute() or model.startswith(("./", "../", "~", ".\\")):
            return model
        raise InvalidInput(
            f"the embedder {shown(model)} is not known: use one of {', '.join(bundled)}; the path of a folder with "
            f"model.onnx; a provider and its model, as 'ollama/nomic-embed-text' ({', '.join((*PROVIDERS, *ROUTED))}); "
            "or any model over HTTP by EMBEDDING_PROVIDER and EMBEDDING_MODEL"
        )
    if address.base_url == PROVIDERS["openai"] and address.api_key is None:
        address = structs.replace(address, api_key=os.environ.get("OPENAI_API_KEY") or None)
        if address.api_key is None:
            raise InvalidInput(
                f"the embedder {shown(model)} is OpenAI's and there is no key: give api_key, or set OPENAI_API_KEY; "
                "'default' is the bundled model, which needs none"
            )
    require(address)
    return address


class Settings(Struct, frozen=True, kw_only=True):
    """How an engine runs. Every field has a measured or safe default.

    - embedder: "default", "instant" (token vectors without a network), "none" (keyword only, or vectors given by the
      caller), a folder with an ONNX model, a model over HTTP with its provider ("ollama/nomic-embed-text",
      "voyage/voyage-3"), or None for the environment's RECOLLECT_EMBEDDER, else EMBEDDING_PROVIDER's, else "default".
    - tier: "standard" is keyword recall only, no model loaded: embedder "none" by another name; "enhanced" is what
      `embedder` says. "1" and "2", as Reactive Agents once called them, give a DeprecationWarning.
    - durability: "full" survives power loss once `remember` returns; "normal" survives a killed process.
    - profile: the profile a recall uses unless it names one, by name or as a `Profile`.
    - busy_timeout_ms: how long a write waits for another process's lock.
    - max_text_chars: longer texts are refused.
    - max_document_bytes, max_document_chars: larger documents, and those with more text, are not ingested.
    - document_memory_mb, document_seconds: what the process that parses PDF, DOCX and HTML may use for one document.
    - sidecar: keep the index of a large store in a file beside it, `<database>-index`, from which it is ready several
      times sooner. The file is derived: it can be deleted at any time, and `forget` deletes it.
    - low_memory: rescoring vectors stay on disk, and with the sidecar all that is not written to, in a nameless copy
      of it that goes when the memory is closed; some recalls wait for the disk.
    - compile_kernels: compile the JIT kernels in the background if this machine has not yet; until then the
      python backend answers.
    - kernels_from: a memory of fewer records does not load the JIT kernels, which take 110 MB; a recall from 4,000
      records then takes some 4 ms more. 0 loads them always.
    - query_cache_size: query embeddings kept in memory.
    - write: what writing does besides storing; None is what the profile implies: "reeve" keeps the latest memory on a
      topic, "hermes" recognises what it has and reports contradictions, the others do nothing.
    - consolidation: consolidate episodes by themselves, after each `threshold` new ones of an agent; None does not.
    - key_file: a file whose first line is the key of an encrypted store, where `Memory` is given none; None is the
      environment's RECOLLECT_KEY, else the file RECOLLECT_KEY_FILE.
    - token_codes: keep a code of 48 bytes for each telling token of what is written, by which recall takes a second
      look at its shortlist. `reembed` adds the codes to what is stored, or removes them.
    """

    embedder: str | None = None
    tier: Literal["standard", "enhanced", "1", "2"] = "enhanced"
    durability: Literal["full", "normal"] = "full"
    profile: str | Profile = "default"
    busy_timeout_ms: int = 10_000
    max_text_chars: int = 1_000_000
    max_document_bytes: int = 100_000_000
    max_document_chars: int = 50_000_000
    document_memory_mb: int = 1024
    document_seconds: float = 60.0
    sidecar: bool = True
    low_memory: bool = False
    compile_kernels: bool = True
    kernels_from: int = 0
    query_cache_size: int = 512
    key_file: str | None = None
    token_codes: bool = False
    write: WritePolicy | None = None
    consolidation: Consolidation | None = None

    def __post_init__(self) -> None:
        if isinstance(self.tier, str) and self.tier in _OLD_TIERS:
            named = _OLD_TIERS[self.tier]
            warnings.warn(f"tier {self.tier!r} is deprecated: use tier={named!r}", DeprecationWarning, stacklevel=3)
            structs.force_setattr(self, "tier", named)
        check_choice(self.tier, "Settings.tier", ("standard", "enhanced"))
        if self.tier == "standard" and self.embedder is not None and self.embedder != "none":
            raise InvalidInput(
                f"Settings.tier 'standard' loads no embedder, but embedder is {shown(self.embedder)}: leave one out"
            )
        for name, kind in (("write", WritePolicy), ("consolidation", Consolidation)):
            if not isinstance(getattr(self, name), kind | None):
                raise InvalidInput(
                    f"Settings.{name} is {shown(getattr(self, name))}: give {kind.__name__}(...) or None"
                )
        check_choice(self.durability, "Settings.durability", ("full", "normal"))
        for name in ("sidecar", "low_memory", "compile_kernels", "token_codes"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"Settings.{name} is {shown(getattr(self, name))}: True or False")
        resolve_profile(self.profile)
        if self.key_file is not None and (not isinstance(self.key_file, str) or not self.key_file):
            raise InvalidInput(f"Settings.key_file is {shown(self.key_file)}: the path of a file, or None")
        if self.embedder is not None and (not isinstance(self.embedder, str) or not self.embedder):
            raise InvalidInput(f"Settings.embedder is {shown(self.embedder)}: a name, a folder, 'none', or None")
        if check_count(self.busy_timeout_ms, "Settings.busy_timeout_ms", minimum=0) >= 2**31:
            raise InvalidInput(f"Settings.busy_timeout_ms is {self.busy_timeout_ms}: at most {2**31 - 1}")
        for name in ("max_text_chars", "max_document_bytes", "max_document_chars", "document_memory_mb"):
            check_count(getattr(self, name), f"Settings.{name}")
        check_finite(self.document_seconds, "Settings.document_seconds", minimum=0.001)
        for name in ("query_cache_size", "kernels_from"):
            check_count(getattr(self, name), f"Settings.{name}", minimum=0)

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
            raise naming(path, fault) from None

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
            table["consolidation"] = {
                name: value for name, value in structs.asdict(self.consolidation).items() if value is not None
            }
        return table


def _implied(profile: str | Profile) -> WritePolicy:
    return _WRITE_POLICIES.get(resolve_profile(profile).name, WritePolicy())


def _changes(value: Struct, base: Struct) -> dict[str, Any]:
    standing = structs.asdict(base)
    return {name: held for name, held in structs.asdict(value).items() if held != standing[name]}
