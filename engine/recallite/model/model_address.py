"""Addresses of models, and the providers that are known by name."""

from __future__ import annotations

import os
from importlib.util import find_spec
from urllib.parse import urlsplit

from msgspec import Struct, structs

from recallite.errors import EmbedderError, InvalidInput
from recallite.model.checks import check_count, check_finite, check_name
from recallite.system.extras import install_command
from recallite.system.messages import shown

PROVIDERS = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434/v1"}
"""Providers that speak OpenAI's protocol, and their base URLs."""
ROUTED = (
    "anthropic", "azure", "bedrock", "cohere", "deepseek", "gemini", "groq", "huggingface", "jina_ai", "mistral",
    "openrouter", "together_ai", "vertex_ai", "voyage", "xai",
)  # fmt: skip
"""Providers reached through litellm; their keys are read from the environment variables that litellm documents."""
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
            structs.force_setattr(self, "api_key", _checked_key(self.api_key))
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


def provider_url(provider: str, name: str = "provider") -> str:
    """The base URL of a provider: one of `PROVIDERS`, or a base URL itself."""
    if provider.strip().lower() in PROVIDERS:
        return PROVIDERS[provider.strip().lower()]
    if "://" in provider:
        return provider
    known = ", ".join((*PROVIDERS, *ROUTED))
    raise InvalidInput(f"{name} is {shown(provider)}: use one of {known}, or a base URL (http://…/v1)")


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


def _checked_key(key: object) -> str:
    # An HTTP header takes nothing else, and the HTTP library would show the key in its error.
    stripped = key.strip() if isinstance(key, str) else ""
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise InvalidInput("api_key is blank or holds what no HTTP header takes: give the key as it was issued")
    return stripped
