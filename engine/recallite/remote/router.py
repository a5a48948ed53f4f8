"""Models of providers with their own protocols, through litellm."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

from recallite.model.model_address import ModelAddress
from recallite.remote.endpoint import failure_of
from recallite.remote.json_service import EndpointError, cleaned

# Without these litellm downloads a price list from GitHub when imported, and a list of headers for beta features of
# Anthropic's models; without the last it reads a file `.env`.
_QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
_NO_KEY = re.compile(r"missing .{0,40}(api key|credentials)|api[ _]key.{0,40}(not set|missing|required)", re.IGNORECASE)


class RoutedSender:
    """Sends requests of a `Service`, in OpenAI's JSON, to the provider in the model's name.

    The first request imports litellm, which takes seconds. A missing key is read from the provider's own variable
    (VOYAGE_API_KEY, GEMINI_API_KEY, ...).
    """

    def __init__(self, address: ModelAddress) -> None:
        self._address = address

    def __call__(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a body and return the JSON object of the answer."""
        litellm = _litellm()
        call = litellm.embedding if path == "/embeddings" else litellm.completion
        try:
            answer: dict[str, Any] = call(
                **{**body, "model": self._address.model},
                api_base=self._address.base_url or None,
                api_key=self._address.api_key,
                timeout=self._address.timeout_seconds,
                # `Service` retries, by the same rule for all.
                num_retries=0,
                max_retries=0,
            ).model_dump()
        except Exception as fault:
            raise self._failure(fault) from fault
        return answer

    def _failure(self, fault: Exception) -> EndpointError:
        """Return the error for an exception of litellm: a class of OpenAI's client, or any other."""
        first_line = str(fault).strip().split("\n")[0]
        message = f"{self._address.model} through litellm: {cleaned(first_line, self._address)}"
        status = getattr(fault, "status_code", None)
        headers = getattr(getattr(fault, "response", None), "headers", None) or {}
        if _NO_KEY.search(first_line):
            status = 401
        return failure_of(message, status if isinstance(status, int) else None, headers.get("retry-after"))


@cache
def _litellm() -> Any:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import litellm

    litellm.suppress_debug_info = True  # it prints advice to standard output
    if litellm.disable_hf_tokenizer_download is None:
        # Otherwise it downloads the tokenizers of some models from Hugging Face to count tokens.
        litellm.disable_hf_tokenizer_download = True
    return litellm
