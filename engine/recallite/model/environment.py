"""The environment: every variable that is read, and the store, keys and models that variables name.

Models have addresses; some providers are known by name.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, structs

from recallite.errors import EmbedderError, InvalidInput, StoreError
from recallite.model.checks import check_count, check_finite, check_name
from recallite.system import plugins
from recallite.system.folders import user_folder
from recallite.system.messages import install_command, shown

PROVIDERS = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434/v1"}
"""Providers that speak OpenAI's protocol, and their base URLs."""
ROUTED = (
    "anthropic", "azure", "bedrock", "cohere", "deepseek", "gemini", "groq", "huggingface", "jina_ai", "mistral",
    "openrouter", "together_ai", "vertex_ai", "voyage", "xai",
)  # fmt: skip
"""Providers reached through litellm; their keys are read from the environment variables that litellm documents."""
_KNOWN = ", ".join((*PROVIDERS, *ROUTED))
# The variables with the keys of those whose protocol is OpenAI's: at a given base URL they are asked without litellm.
_LIKE_OPENAI = {
    "deepseek": "DEEPSEEK_API_KEY", "groq": "GROQ_API_KEY", "jina_ai": "JINA_AI_API_KEY", "mistral": "MISTRAL_API_KEY",
    "openrouter": "OPENROUTER_API_KEY", "together_ai": "TOGETHERAI_API_KEY", "voyage": "VOYAGE_API_KEY",
    "xai": "XAI_API_KEY",
}  # fmt: skip


class ModelAddress(Struct, frozen=True, kw_only=True):
    """A model at an endpoint with OpenAI's protocol: the base URL (usually ending in /v1), the model's name there, and
    the key if one is needed. Its repr hides the key. For an embedder, `timeout_seconds` applies to one attempt and
    `batch_size` is the number of texts per request.

    The name of a model of a `ROUTED` provider includes the provider ("voyage/voyage-3"); its base URL is needed only
    where it is not the provider's own.
    """

    base_url: str = ""
    model: str
    api_key: str | None = None
    timeout_seconds: float = 30.0
    batch_size: int = 64
    routed: bool = False

    def __post_init__(self) -> None:
        if self.base_url or not self.routed:
            structs.force_setattr(self, "base_url", _checked_url(self.base_url))
        check_name(self.model, "model")
        if self.api_key is not None:
            # An HTTP header takes nothing else, and the HTTP library would show the key in its error.
            stripped = self.api_key.strip() if isinstance(self.api_key, str) else ""
            if not stripped or not stripped.isascii() or not stripped.isprintable():
                raise InvalidInput("api_key is blank or holds what no HTTP header takes: give the key as it was issued")
            structs.force_setattr(self, "api_key", stripped)
        if check_finite(self.timeout_seconds, "timeout_seconds") <= 0:
            raise InvalidInput(f"timeout_seconds is {shown(self.timeout_seconds)}: give seconds above 0")
        check_count(self.batch_size, "batch_size")

    @property
    def extra(self) -> str:
        """The extra of Recallite that installs the libraries for it."""
        return "providers" if self.routed else "llm"

    def __str__(self) -> str:
        return f"{self.model} at {self.base_url}" if self.base_url else self.model

    def __repr__(self) -> str:
        key = "None" if self.api_key is None else "'…'"
        return f"ModelAddress(base_url={self.base_url!r}, model={self.model!r}, api_key={key})"


def address_of(name: str, *, api_base: str | None = None, **options: object) -> ModelAddress | None:
    """The address for a name that includes its provider, such as "ollama/nomic-embed-text" or "voyage/voyage-3", at
    `api_base` or the provider's own URL; any other name at `api_base`; None without one. At `api_base` the providers
    whose protocol is OpenAI's need no litellm.

    `options` are the other fields of `ModelAddress`.
    """
    provider, slash, model = name.partition("/")
    provider = provider.lower() if slash and model else ""
    direct = api_base is not None and provider in _LIKE_OPENAI
    if provider in ROUTED and not direct:
        return ModelAddress(base_url=api_base or "", model=f"{provider}/{model}", routed=True, **options)  # type: ignore[arg-type]
    if provider not in PROVIDERS and api_base is None:
        return None
    if direct and options.get("api_key") is None:
        options["api_key"] = os.environ.get(_LIKE_OPENAI[provider]) or None
    base_url = (PROVIDERS[provider] if api_base is None else api_base).rstrip("/")
    if provider == "ollama" and base_url.count("/") == 2:
        base_url += "/v1"  # Ollama's own clients take a URL without a path
    return ModelAddress(base_url=base_url, model=model if direct or provider in PROVIDERS else name, **options)  # type: ignore[arg-type]


def require(address: ModelAddress) -> None:
    """Raise EmbedderError where the library for a model's provider is not installed; imports nothing."""
    if address.routed and find_spec("litellm") is None:
        raise EmbedderError(
            f"{address.model} is asked by litellm, which is not installed: {install_command('providers')}", "missing"
        )


def _checked_url(url: object) -> str:
    advice = "give one such as 'http://localhost:11434/v1'"
    if not isinstance(url, str):
        raise InvalidInput(f"base_url is {shown(url)}: {advice}")
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        raise InvalidInput(f"base_url is no URL: {advice}") from None
    if parts.username is not None or parts.query or parts.fragment:
        # Not shown: it may contain a secret.
        raise InvalidInput("base_url holds a user, a query or a fragment: give the key as api_key")
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable():
        raise InvalidInput(f"base_url is {shown(url)}: {advice}")
    return url.strip().rstrip("/")


VARIABLES = {
    "RECALLITE_DB": "Path of the store that is opened where none is given.",
    "RECALLITE_SETTINGS": "Settings file of the command line.",
    "RECALLITE_EMBEDDER": "Embedder where `Settings.embedder` is None.",
    "RECALLITE_KEY": "Key of an encrypted store.",
    "RECALLITE_KEY_FILE": "File whose first line is the key of an encrypted store.",
    "RECALLITE_NEW_KEY": "New key for `recallite rekey`.",
    "RECALLITE_MCP_TOKEN": "Token of `recallite mcp --http`.",
    "RECALLITE_LLM_BASE_URL": "Base URL of the language model, such as http://localhost:11434/v1.",
    "RECALLITE_LLM_MODEL": "Name of the language model; with its provider before it, it needs no base URL.",
    "RECALLITE_LLM_API_KEY": "Key of the language model.",
    "EMBEDDING_PROVIDER": "Provider of a remote embedder (`openai`, `ollama`, `voyage`, ...) or its base URL.",
    "EMBEDDING_MODEL": "Model of EMBEDDING_PROVIDER.",
    "EMBEDDING_BASE_URL": "Base URL in place of the provider's own.",
    "EMBEDDING_API_KEY": "Key of EMBEDDING_PROVIDER.",
    "OPENAI_API_KEY": "Key for OpenAI's models; sent to OpenAI or OPENAI_BASE_URL only.",
    "OPENAI_BASE_URL": "Base URL for OpenAI's language models.",
    "RECALLITE_WARM": "`0` keeps the command line and `recallite mcp` from using or starting the resident process.",
    "RECALLITE_LOW_MEMORY": "`1` has large arrays of the index grow on disk too, in unnamed files that are gone when "
    "the memory is closed; what is loaded from the index snapshot is there in any case. Some recalls wait for it.",
    "RECALLITE_COMPILE_KERNELS": "`0` compiles no JIT kernels. By default a process in the background compiles them on "
    "first use; the python backend answers until then.",
    "RECALLITE_KERNELS_FROM": "Records from which the JIT kernels are loaded, 0 by default. They take 60 MB and save "
    "some 4 ms per recall at 4,000 records.",
    "RECALLITE_QUERY_CACHE_SIZE": "Query embeddings kept in memory, 512 by default.",
    "RECALLITE_KERNELS": "Kernel backend: `numba` or `python`; read by recallite_kernels.",
    "RECALLITE_CACHE_DIR": "Folder of compiled kernels, and of hashes of models; read by recallite_kernels.",
    "RECALLITE_DEBUG": "`1` makes the command line print its log and tracebacks, on standard error.",
}
"""Every environment variable that Recallite reads, and what it says."""

# OpenAI's embedders need no "openai/" before their name, as in memweave.
_OPENAI_EMBEDDERS = "text-embedding-"


def environment(name: str) -> str | None:
    """The value of a variable of `VARIABLES`; None where it is unset or empty."""
    assert name in VARIABLES, name
    return os.environ.get(name) or None


_TUNING = {
    "low_memory": "RECALLITE_LOW_MEMORY", "compile_kernels": "RECALLITE_COMPILE_KERNELS",
    "kernels_from": "RECALLITE_KERNELS_FROM", "query_cache_size": "RECALLITE_QUERY_CACHE_SIZE",
}  # fmt: skip


class Tuning(msgspec.Struct, frozen=True, kw_only=True, rename=_TUNING):
    """Memory and time that a process may spend: each field by its variable."""

    low_memory: bool = False
    compile_kernels: bool = True
    kernels_from: Annotated[int, Meta(ge=0)] = 0
    query_cache_size: Annotated[int, Meta(ge=0)] = 512


def tuning() -> Tuning:
    """The tuning that the environment says. Raises InvalidInput, which names the variable that is wrong."""
    values = {name: value for name in _TUNING.values() if (value := environment(name)) is not None}
    try:
        return msgspec.convert(values, Tuning, strict=False)
    except msgspec.ValidationError as fault:
        name = str(fault).rpartition("$.")[2].rstrip("`")
        remedy = "0 or 1" if "`bool`" in str(fault) else "a whole number of at least 0"
        raise InvalidInput(f"{name} is {shown(values[name])}: give {remedy}") from None


def default_path() -> str:
    """The path of a memory that is given none: RECALLITE_DB, else `memory.db` in the user's data directory.

    Raises StoreError if that directory cannot be made.
    """
    if path := environment("RECALLITE_DB"):
        return path
    folder = Path(user_folder())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as fault:
        raise StoreError(
            f"the folder {folder} cannot be made ({fault.strerror}): give the path of the memory, or set RECALLITE_DB"
        ) from fault
    return str(folder / "memory.db")


def named_key(key_file: str | None = None) -> str | None:
    """The key of an encrypted store, or None: from `key_file`, else RECALLITE_KEY, else the file RECALLITE_KEY_FILE.

    Raises InvalidInput where the file has no key.
    """
    if key_file is None and (key := environment("RECALLITE_KEY")):
        return key
    path = key_file or environment("RECALLITE_KEY_FILE")
    return None if not path else key_in(path)


def key_in(path: str) -> str:
    """The key in the first line of a file. Raises InvalidInput where there is none; the message shows no content."""
    try:
        lines = Path(path).expanduser().read_text("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text: give a file whose first line is the key") from None
    except (OSError, RuntimeError, ValueError) as fault:
        raise InvalidInput(f"the key in {path} cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    if not lines or not lines[0]:
        raise InvalidInput(f"the first line of {path} is empty: write the key there")
    return lines[0]


def language_model_address(
    base_url: str | None = None, model: str | None = None, api_key: str | None = None
) -> ModelAddress | None:
    """The language model of these arguments, which default to RECALLITE_LLM_BASE_URL, RECALLITE_LLM_MODEL and
    RECALLITE_LLM_API_KEY; None without URL and model.

    A model with its provider before its name needs no URL. Else InvalidInput is raised if one of them is missing.
    """
    base_url = base_url or environment("RECALLITE_LLM_BASE_URL")
    model = model or environment("RECALLITE_LLM_MODEL")
    if base_url is None and model is None:
        return None
    key = api_key or environment("RECALLITE_LLM_API_KEY")
    if base_url is None and model is not None and address_of(model) is not None:
        return named_language_model(model, api_key=key)
    if base_url is None or model is None:
        name = "RECALLITE_LLM_BASE_URL" if base_url is None else "RECALLITE_LLM_MODEL"
        raise InvalidInput(f"{name} is not set: a language model needs a base URL and a model's name")
    return ModelAddress(base_url=base_url, model=model, api_key=key)


def named_language_model(name: str, *, api_base: str | None = None, api_key: str | None = None) -> ModelAddress:
    """The language model of a name: with its provider ("gemini/gemini-2.0-flash", "ollama/llama3.2"), at `api_base`,
    else OpenAI's ("gpt-4o-mini"), for which OPENAI_BASE_URL and OPENAI_API_KEY are the defaults.

    Raises InvalidInput for an unknown provider, and for OpenAI's without a key.
    """
    provider, slash, rest = check_name(name, "model").partition("/")
    if api_base is None and (not slash or provider.lower() == "openai"):
        api_base = environment("OPENAI_BASE_URL") or PROVIDERS["openai"]
        api_key = api_key or environment("OPENAI_API_KEY")
        if api_key is None and api_base == PROVIDERS["openai"]:
            raise InvalidInput(
                f"the language model {shown(name)} is OpenAI's and there is no key: give api_key, or set "
                "OPENAI_API_KEY, or OPENAI_BASE_URL where it is served elsewhere"
            )
        return ModelAddress(base_url=api_base, model=rest if slash else name, api_key=api_key)
    address = address_of(name, api_base=api_base, api_key=api_key)
    if address is None:
        raise InvalidInput(
            f"the provider of the language model {shown(name)} is none of {_KNOWN}: give the base URL that serves it"
        )
    return address


def default_embedder() -> str | ModelAddress:
    """The embedder where none is configured: RECALLITE_EMBEDDER, else EMBEDDING_PROVIDER's, else "default"."""
    return environment("RECALLITE_EMBEDDER") or _embedder_address() or "default"


def _embedder_address() -> ModelAddress | None:
    """The embedder of EMBEDDING_PROVIDER (one of `PROVIDERS` or `ROUTED`, or a base URL); None without a provider."""
    provider = (environment("EMBEDDING_PROVIDER") or "").strip()
    if not provider:
        return None
    routed = provider.lower() in ROUTED
    base_url = "" if routed else PROVIDERS.get(provider.lower(), provider)
    if not routed and "://" not in base_url:
        raise InvalidInput(f"EMBEDDING_PROVIDER is {shown(provider)}: use one of {_KNOWN}, or a base URL (http://…/v1)")
    model = environment("EMBEDDING_MODEL")
    if not model:
        raise InvalidInput(
            "EMBEDDING_MODEL is not set: name the model of EMBEDDING_PROVIDER, as 'text-embedding-3-small'"
        )
    key = environment("EMBEDDING_API_KEY")
    # OpenAI's key is sent to OpenAI only, or to where the user says that OpenAI is.
    is_openai = base_url == PROVIDERS["openai"]
    if is_openai:
        key = key or environment("OPENAI_API_KEY")
    base_url = environment("EMBEDDING_BASE_URL") or base_url
    if is_openai and not key:
        raise InvalidInput("EMBEDDING_PROVIDER is openai and there is no key: set EMBEDDING_API_KEY or OPENAI_API_KEY")
    if routed:
        return address_of(f"{provider}/{model}", api_base=base_url or None, api_key=key)
    return ModelAddress(base_url=base_url, model=model, api_key=key)


def named_embedder(
    model: str | None,
    *,
    api_base: str | None = None,
    api_key: str | None = None,
    timeout_seconds: float = 30.0,
    batch_size: int = 64,
) -> str | ModelAddress:
    """The source of an embedder: a registered name or a folder as it is, else a model over HTTP at `api_base` or
    its provider's URL ("ollama/nomic-embed-text", "voyage/voyage-3", OpenAI's "text-embedding-3-small"). None is the
    environment's. `api_key` defaults to EMBEDDING_API_KEY, for OpenAI also to OPENAI_API_KEY.

    An explicit path (`./model`, `/model`) need not exist yet. Raises InvalidInput for an unknown name, and for OpenAI's
    without a key; EmbedderError where the client library is not installed.
    """
    options: dict[str, Any] = {"timeout_seconds": timeout_seconds, "batch_size": batch_size}
    if model is None:
        spec = default_embedder()
        return structs.replace(spec, **options) if isinstance(spec, ModelAddress) else named_embedder(spec, **options)
    if api_base is None and (model.lower() in ("default", "none") or Path(model).expanduser().is_dir()):
        return model  # before entry points are read, which takes 20 ms
    named = plugins.names("embedders")
    if api_base is None and model.lower() in map(str.lower, named):
        return model
    if api_base is None and model.lower().startswith(_OPENAI_EMBEDDERS):
        model = f"openai/{model}"
    key = api_key or environment("EMBEDDING_API_KEY")
    address = address_of(model, api_base=api_base, api_key=key, **options)
    if address is None:
        if Path(model).is_absolute() or model.startswith(("./", "../", "~", ".\\")):
            return model
        raise InvalidInput(
            f"the embedder {shown(model)} is not known: use one of {', '.join(('default', 'none', *named))}; the path "
            "of a folder with model.onnx; a provider and its model, as 'ollama/nomic-embed-text' "
            f"({_KNOWN}); or any model over HTTP by EMBEDDING_PROVIDER and EMBEDDING_MODEL"
        )
    if address.base_url == PROVIDERS["openai"] and address.api_key is None:
        address = structs.replace(address, api_key=environment("OPENAI_API_KEY"))
        if address.api_key is None:
            raise InvalidInput(
                f"the embedder {shown(model)} is OpenAI's and there is no key: give api_key, or set OPENAI_API_KEY; "
                "'default' is the bundled model, which needs none"
            )
    require(address)
    return address
