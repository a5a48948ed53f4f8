"""Models of providers with their own protocols, through litellm."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

from recallite.remote.endpoint import retry_after
from recallite.remote.json_service import EndpointError, Service

# Without these litellm downloads a price list from GitHub when imported, and a list of headers for beta features of
# Anthropic's models; without the last it reads a file `.env`.
_QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
_TIMED_OUT = 408
_TOO_MANY = 429
_NO_KEY = re.compile(r"missing .{0,40}(api key|credentials)|api[ _]key.{0,40}(not set|missing|required)", re.IGNORECASE)


class RoutedService(Service):
    """A `Service` with OpenAI's JSON in front of the provider in the model's name.

    The first request imports litellm, which takes seconds. A missing key is read from the provider's own variable
    (VOYAGE_API_KEY, GEMINI_API_KEY, ...).
    """

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        litellm = _litellm()
        ask = litellm.embedding if path == "/embeddings" else litellm.completion
        address = self._address
        try:
            answer: dict[str, Any] = ask(
                **{**body, "model": address.model},
                api_base=address.base_url or None,
                api_key=address.api_key,
                timeout=self._timeout_seconds,
                # `Service` retries, by the same rule for all.
                num_retries=0,
                max_retries=0,
            ).model_dump()
        except Exception as fault:
            raise self._failed(fault) from fault
        return answer

    def _failed(self, fault: Exception) -> EndpointError:
        """The error for whatever litellm raised: a class of OpenAI's client, or any other."""
        first = str(fault).strip().split("\n")[0]
        message = f"{self._address.model} through litellm: {self.clean(first)}"
        status = getattr(fault, "status_code", None)
        status = status if isinstance(status, int) else None
        if _NO_KEY.search(first):
            return EndpointError(message, status=401)
        headers = getattr(getattr(fault, "response", None), "headers", None) or {}
        passing = status is None or status in (_TIMED_OUT, _TOO_MANY) or status >= 500
        return EndpointError(
            message, status=status, passing=passing, wait_seconds=retry_after(headers.get("retry-after"))
        )


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
