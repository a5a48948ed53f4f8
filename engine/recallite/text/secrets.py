"""Secrets in a text: keys, tokens and passwords as detect-secrets knows them, private keys, card numbers and IBANs.

Card numbers count only with a known issuer's prefix and a right check digit (ISO/IEC 7812-1, Luhn), IBANs only with a
right remainder (ISO 13616, mod 97). Strings that merely look random are not reported.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from recallite.errors import InvalidInput
from recallite.system.extras import install_command
from recallite.text.lazy_patterns import lazily

# Classes of detect_secrets.plugins by module. Left out are detectors by entropy and of public IP addresses, and those
# of npm tokens and keywords, which take quadratic time on "://://" and "passwordpassword".
_DETECTORS = {
    "artifactory": "ArtifactoryDetector", "aws": "AWSKeyDetector", "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector", "cloudant": "CloudantDetector", "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector", "gitlab_token": "GitLabTokenDetector",
    "ibm_cloud_iam": "IbmCloudIamDetector", "ibm_cos_hmac": "IbmCosHmacDetector", "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector", "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector", "sendgrid": "SendGridDetector", "slack": "SlackDetector",
    "softlayer": "SoftlayerDetector", "square_oauth": "SquareOAuthDetector", "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector", "twilio": "TwilioKeyDetector",
}  # fmt: skip
# Keys that detect-secrets does not know, by their documented prefixes.
_PREFIXED = lazily(
    r"\b(?:sk-(?:ant|proj|svcacct)-[\w-]{20,200}|github_pat_\w{22,200}|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,60}"
    r"|AIza[\w-]{35}|xai-[A-Za-z0-9]{40,120}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,200}|whsec_[A-Za-z0-9+/=]{24,80})"
)
# A value given as a password or key: at least six characters, one of which is not a letter.
_NAMED = lazily(
    r"\b[\w-]{0,40}?(?:password|passwd|passphrase|pwd|secret|token|api[_ -]?key"
    r"|(?:access|secret|private)[_ -]key)\w{0,20}"
    r"(?:[\"']?\s{0,3}[:=]\s{0,3}[\"']?|(?:\s(?:for|of|to|on|in|at)\s[^\n:=]{1,40}?)?\s{1,3}is\s{1,3})"
    r"(?P<value>(?=[A-Za-z]{0,60}[^\sA-Za-z\[\]\"',;.?])[^\s\[\]\"',;]{6,200})",
    re.IGNORECASE,
)
_PRIVATE_KEY = lazily(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----")
_PRIVATE_KEY_END = lazily(r"-----END [A-Z ]{0,30}PRIVATE KEY-----")
_DIGITS = lazily(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
# Visa; Mastercard; American Express, Diners Club and JCB; UnionPay and Discover.
_ISSUER = lazily(r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|3[4678]|30[0-5]|352[89]|35[3-8]|62|65|6011")
_IBAN = lazily(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?!\w)")
# The rest of a token of which a detector reports only a part.
_TOKEN = lazily(r"[\w.-]*")
# Detectors get windows of these sizes: some of their patterns take quadratic time.
_WINDOW_CHARS, _OVERLAP_CHARS = 4096, 1024


class Secret(NamedTuple):
    """A part of a text, from `start` to `stop`, and what it is."""

    start: int
    stop: int
    kind: str


NO_DETECTOR = f"secrets are found with detect-secrets, which is not installed: {install_command('audit')}"


def has_detector() -> bool:
    """Whether detect-secrets is installed."""
    return importlib.util.find_spec("detect_secrets") is not None


def find_secrets(text: str, *, known_only: bool = False) -> list[Secret]:
    """The secrets of a text, in order, without overlaps; with `known_only` what is known here without detect-secrets.

    Raises InvalidInput where detect-secrets is needed and not installed.
    """
    matches = [
        *_private_keys(text),
        *(Secret(*match.span(), "API key") for match in _PREFIXED.finditer(text)),
        *(Secret(*match.span(), "card number") for match in _DIGITS.finditer(text) if _is_card(match[0])),
        *(Secret(*match.span(), "IBAN") for match in _IBAN.finditer(text) if _is_iban(match[0])),
        *_named(text),
        *(() if known_only else _detected(text)),
    ]
    apart: list[Secret] = []
    for secret in sorted(matches, key=lambda secret: (secret.start, -secret.stop)):
        if not apart or secret.start >= apart[-1].stop:
            apart.append(secret)
        elif secret.stop > apart[-1].stop:
            apart[-1] = apart[-1]._replace(stop=secret.stop)
    return apart


def redact(text: str, *, known_only: bool = False) -> str:
    """The text with each secret replaced by its kind, as "[redacted: card number]"."""
    parts, end = [], 0
    for start, stop, kind in find_secrets(text, known_only=known_only):
        parts += [text[end:start], f"[redacted: {kind}]"]
        end = stop
    return "".join([*parts, text[end:]]) if parts else text


def redact_all(value: Any) -> Any:
    """A JSON value with the secrets in its strings redacted; keys are kept."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_all(item) for key, item in value.items()}
    return [redact_all(item) for item in value] if isinstance(value, list | tuple) else value


def strings_of(value: object) -> Iterator[str]:
    """Every string of a JSON value except its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_of(item)


@lru_cache(maxsize=1)
def _detectors() -> tuple[Any, ...]:
    if not has_detector():
        raise InvalidInput(NO_DETECTOR)
    modules = {name: importlib.import_module(f"detect_secrets.plugins.{name}") for name in _DETECTORS}
    return tuple(getattr(modules[name], kind)() for name, kind in _DETECTORS.items())


def _detected(text: str) -> Iterator[Secret]:
    detectors = _detectors()
    offset = 0
    for line in text.splitlines(keepends=True):
        for begin in range(0, max(1, len(line) - _OVERLAP_CHARS), _WINDOW_CHARS - _OVERLAP_CHARS):
            window = line[begin : begin + _WINDOW_CHARS]
            for detector in detectors:
                for value in set(detector.analyze_string(window)):
                    yield from _places(window, value, str(detector.secret_type), offset + begin)
        offset += len(line)


def _places(window: str, value: str, kind: str, offset: int) -> Iterator[Secret]:
    """The positions of a detected value, with the rest of its token."""
    if not value:
        return
    start = window.find(value)
    while start >= 0:
        rest = _TOKEN.match(window, start + len(value))
        assert rest is not None
        stop = rest.end() - (len(rest[0]) - len(rest[0].rstrip(".")))
        yield Secret(offset + start, offset + stop, kind)
        start = window.find(value, stop)


def _named(text: str) -> Iterator[Secret]:
    for match in _NAMED.finditer(text):
        start, stop = match.span("value")
        yield Secret(start, stop - (len(match["value"]) - len(match["value"].rstrip(".!?)"))), "password or key")


def _private_keys(text: str) -> Iterator[Secret]:
    """PEM blocks (RFC 7468); an unterminated one extends to the end of the text."""
    place = 0
    while (begin := _PRIVATE_KEY.search(text, place)) is not None:
        end = _PRIVATE_KEY_END.search(text, begin.end())
        place = len(text) if end is None else end.end()
        yield Secret(begin.start(), place, "private key")


def _is_card(digits: str) -> bool:
    number = [int(digit) for digit in digits if digit.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in number[-2::-2]]
    known = _ISSUER.match("".join(map(str, number[:4]))) is not None
    return known and (sum(number[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    compact = text.replace(" ", "")
    return 15 <= len(compact) <= 34 and int("".join(str(int(char, 36)) for char in compact[4:] + compact[:4])) % 97 == 1
