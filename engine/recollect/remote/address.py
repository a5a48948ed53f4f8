"""Where a model is served."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct, structs

from recollect.checks import check_name, shown
from recollect.errors import InvalidInput

__all__ = ["PROVIDERS", "ModelAddress", "provider_url"]

PROVIDERS = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434/v1"}
"""Providers known by name, and their base URLs."""


class ModelAddress(Struct, frozen=True, kw_only=True):
    """A model at an endpoint that speaks OpenAI's protocol: the base URL (it usually ends in /v1), the model's name
    there, the key if one is needed. Its repr does not show the key. Of an embedder, `timeout_seconds` is that of one
    attempt and `batch_size` how many texts a request has.
    """

    base_url: str
    model: str
    api_key: str | None = None
    timeout_seconds: float = 30.0
    batch_size: int = 64

    def __post_init__(self) -> None:
        structs.force_setattr(self, "base_url", _checked_url(self.base_url))
        check_name(self.model, "model")
        if self.api_key is not None:
            structs.force_setattr(self, "api_key", _checked_key(self.api_key))

    def __repr__(self) -> str:
        key = "None" if self.api_key is None else "'…'"
        return f"ModelAddress(base_url={self.base_url!r}, model={self.model!r}, api_key={key})"


def provider_url(provider: str, name: str = "provider") -> str:
    """The base URL of a provider: one of `PROVIDERS`, or a base URL itself."""
    if provider.strip().lower() in PROVIDERS:
        return PROVIDERS[provider.strip().lower()]
    if "://" in provider:
        return provider
    raise InvalidInput(f"{name} is {shown(provider)}: use one of {', '.join(PROVIDERS)}, or a base URL (http://…/v1)")


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
        # Not shown: what stands there may be a secret.
        raise InvalidInput("base_url holds a user, a query or a fragment: give the key as api_key")
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable():
        raise InvalidInput(f"base_url is {shown(url)}: {advice}")
    return url.strip().rstrip("/")


def _checked_key(key: object) -> str:
    # A header takes nothing else, and the library that would refuse it shows it.
    stripped = key.strip() if isinstance(key, str) else ""
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise InvalidInput("api_key is blank or holds what no HTTP header takes: give the key as it was issued")
    return stripped
