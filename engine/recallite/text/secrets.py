"""Secrets in a text: keys of services, private keys, card numbers, IBANs, and what `named_secrets` finds by its place.

Keys of services are known by the prefixes that the services document (`secrets.txt`). Card numbers count only with a
known issuer's prefix and a right check digit (ISO/IEC 7812-1, Luhn), IBANs only with a right remainder (ISO 13616, mod
97). Strings that merely look random are no secrets: commits, digests and ids do too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from recallite.text.named_secrets import MASK, kind_of_field, named_secrets
from recallite.text.patterns import lazily, read_tables

# Characters that show nothing (Default_Ignorable_Code_Point): a key with one in it is a key.
_INVISIBLE = lazily(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\U000e0000-\U000e0fff]+"
)
_REDACTED = lazily(r"\[redacted: [^\[\]\n]{1,60}\]")
# Every key of `secrets.txt` and every other that is known by its form is as long.
_LEAST_KEY_CHARS = 16
_OF_BASE64 = frozenset("+/-_")
_ALPHABETS = {
    "alnum": lazily(r"[A-Za-z0-9]+"), "word": lazily(r"[\w-]+", re.ASCII), "mixed": lazily(r"[A-Za-z0-9_]+"),
    "hex": lazily(r"[0-9a-fA-F]+"), "upper": lazily(r"[A-Z0-9]+"), "base64": lazily(r"[\w+/=.%-]+", re.ASCII),
    "dotted": lazily(r"[\w.:=-]+", re.ASCII),
}  # fmt: skip
# Keys whose forms have more than a prefix, with strings of which each has one.
_FORMS = {
    "AWS access key": (
        ("A3T", "AKIA", "ASIA", "ABIA", "ACCA"),
        lazily(r"(?<![A-Z0-9])(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ),
    "Slack token": (("xox",), lazily(r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,250}")),
    "JWT": (
        ("eyJ", "eyI"),
        lazily(r"(?<![\w-])ey[JI][\w-]{10,}\.(?:ey[\w-]{10,}(?:\.[\w-]*)?|[\w-]*(?:\.[\w-]+){3})", re.ASCII),
    ),
    "Telegram token": ((":AA",), lazily(r"(?<!\d)\d{8,10}:AA[\w-]{33}(?![\w-])", re.ASCII)),
    "Discord token": (
        (".",), lazily(r"[MNO][A-Za-z0-9_-]{23,27}(?<![\w-][MNO][\w-]{23})\.[\w-]{6}\.[\w-]{27,40}(?![\w-])", re.ASCII)
    ),
    "Twilio key": (("SK",), lazily(r"(?<![A-Za-z0-9])SK[0-9a-f]{32}(?![A-Za-z0-9])")),
    "Mailchimp key": (("-us",), lazily(r"(?<![A-Za-z0-9])[0-9a-f]{32}-us\d{1,2}(?!\w)")),
    "Terraform token": ((".atlasv1.",), lazily(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,120}", re.ASCII)),
    "Airtable token": (("pat",), lazily(r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[0-9a-f]{64}")),
    "Azure secret": (("Q~",), lazily(r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])", re.ASCII)),
    "Harness token": (
        ("at.",), lazily(r"(?<![A-Za-z0-9])[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", re.ASCII)
    ),
    "MaxMind key": (("_mmk",), lazily(r"(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)")),
    "1Password key": (("A3-",), lazily(r"(?<![A-Z0-9-])A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5}(?![A-Z0-9-])")),
    "Facebook token": (("EAA",), lazily(r"(?<![A-Za-z0-9])EAA[A-Z][A-Za-z0-9]{80,}")),
    "password hash": (
        ("$2", "$5$", "$6$", "$y$", "$argon2", "$apr1$", "$scrypt$"),
        lazily(r"\$(?:2[abxy]?|5|6|y|argon2(?:id|i|d)|apr1|scrypt)\$[\w./+=,$-]{20,200}", re.ASCII),
    ),
    "Firebase key": (("APA91b",), lazily(r"(?<![\w-])[\w-]{11}:APA91b[\w-]{100,200}", re.ASCII)),
    # Of any service: a prefix that ends in what the key is, then what looks like no word.
    "API key": (
        ("sk_", "sk-", "api_", "api-", "pat_", "pat-", "tok_", "tkn_", "token_", "token-", "secret_", "key_", "key-"),
        lazily(
            r"(?<![A-Za-z0-9_-])(?:[a-z0-9]{1,12}[_-]){0,3}"
            r"(?:[a-z0-9]{0,10}(?:sk|api|pat|token|secret|apikey)|tok|tkn|key)[_-](?:(?:v\d|live|test|prod)[_-])?"
            r"(?=[A-Za-z]{0,60}\d)(?=\d{0,60}[A-Za-z])[A-Za-z0-9]{24,}(?![\w-])"
        ),
    ),
}  # fmt: skip
# The secret that belongs to an AWS access key, beside it.
_AWS_SECRET = lazily(
    r"(?<![A-Za-z0-9/+=])(?=[0-9a-z/+]{0,39}[A-Z])(?=[A-Z/+]{0,39}[0-9a-z])[A-Za-z0-9/+]{36,44}(?![\w/+=])"
)
_BESIDE_CHARS = 200
# The rest of a token of which only a beginning is known.
_TOKEN = lazily(r"[\w-]*(?:\.[\w-]+)*", re.ASCII)
# The private half of a key of PuTTY: a count of lines, and these.
_PUTTY_KEY = lazily(r"Private-Lines: \d{1,4}(?:\r?\n[A-Za-z0-9+/=]{1,100}){1,400}")
_PRIVATE_KEY = lazily(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PRIVATE_KEY_END = lazily(r"-{4,5} ?END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
# Each begins with what is looked for, which is fast, and then looks behind it.
_DIGITS = lazily(r"\d(?<![\w./-]\d)(?:[ -]?\d){12,18}(?![\w-])")
# Visa; Mastercard; American Express, Diners Club and JCB; UnionPay and Discover.
_ISSUER = lazily(r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|3[4678]|30[0-5]|352[89]|35[3-8]|62|65|6011")
_IBAN = lazily(r"[A-Z]{2}\d{2}(?<!\w[A-Z]{2}\d{2})(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?!\w)")


class Secret(NamedTuple):
    """A part of a text, from `start` to `stop`, and what it is."""

    start: int
    stop: int
    kind: str


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text, in order, without overlaps."""
    plain, positions = _visible(text)
    matches = [*_keys(plain), *_cards_and_ibans(plain), *_private_keys(plain)]
    matches += [Secret(*named) for named in named_secrets(plain)]
    if not matches:
        return []
    apart: list[Secret] = []
    for secret in sorted(matches, key=lambda secret: (secret.start, -secret.stop)):
        if not apart or secret.start >= apart[-1].stop:
            apart.append(secret)
        elif secret.stop > apart[-1].stop:
            apart[-1] = apart[-1]._replace(stop=secret.stop)
    if positions is None:
        return apart
    return [Secret(positions[start], positions[stop - 1] + 1, kind) for start, stop, kind in apart]


def redact(text: str) -> str:
    """The text with each secret replaced by its kind, as "[redacted: card number]"."""
    parts, end = [], 0
    for start, stop, kind in find_secrets(text):
        parts += [text[end:start], f"[redacted: {kind}]"]
        end = stop
    return "".join([*parts, text[end:]]) if parts else text


def redact_all(value: Any, name: str = "") -> Any:
    """A JSON value with the secrets in its strings redacted; keys are kept, and say what their values are."""
    if isinstance(value, str):
        kind = kind_of_field(name, value) if name else None
        return redact(value) if kind is None else f"[redacted: {kind}]"
    if isinstance(value, dict):
        return {key: redact_all(item, key if isinstance(key, str) else "") for key, item in value.items()}
    return [redact_all(item, name) for item in value] if isinstance(value, list | tuple) else value


def _visible(text: str) -> tuple[str, list[int] | None]:
    """A text without what is invisible and with what was redacted before masked; the positions of its characters."""
    positions: list[int] | None = None
    if not text.isascii() and _INVISIBLE.search(text) is not None:
        positions, end = [], 0
        for match in _INVISIBLE.finditer(text):
            positions += range(end, match.start())
            end = match.end()
        positions += range(end, len(text))
        text = _INVISIBLE.sub("", text)
    if "[redacted: " in text:
        text = _REDACTED.sub(lambda match: MASK * len(match[0]), text)
    return text, positions


@cache
def _prefixes() -> tuple[tuple[str, int, re.Pattern[str], str], ...]:
    """For each service: the prefix of its keys, the fewest characters that follow, their alphabet, and the kind."""
    rows = (line.split(" ", 3) for line in read_tables(__file__)["keys"].splitlines())
    return tuple((prefix, int(least), _ALPHABETS[alphabet], kind) for prefix, least, alphabet, kind in rows)


def _keys(text: str) -> Iterator[Secret]:
    """Keys that are known by their forms, wherever they stand."""
    # Few words are as long as a key: only they are searched for each prefix and form.
    long_words = " ".join([word for word in text.split() if len(word) >= _LEAST_KEY_CHARS])
    if not long_words:
        return
    for prefix, least, alphabet, kind in [row for row in _prefixes() if row[0] in long_words]:
        start = text.find(prefix)
        while start >= 0:
            begin, before = start + len(prefix), text[start - 1 : start]
            rest = alphabet.match(text, begin)
            end = begin if rest is None else rest.end()
            # A short prefix may be anywhere in what is encoded in base64.
            is_inside = before.isascii() and (before.isalnum() or (len(prefix) < 5 and before in _OF_BASE64))
            if end - begin >= least and not is_inside:
                yield Secret(start, _token_end(text, end), kind)
            start = text.find(prefix, max(end, start + 1))
    for kind, (signs, pattern) in _FORMS.items():
        if any(map(long_words.__contains__, signs)) and pattern.search(long_words) is not None:
            for match in pattern.finditer(text):
                yield Secret(match.start(), _token_end(text, match.end()), kind)
                if kind == "AWS access key":
                    near = max(0, match.start() - _BESIDE_CHARS), match.end() + _BESIDE_CHARS
                    yield from (Secret(*beside.span(), "AWS secret") for beside in _AWS_SECRET.finditer(text, *near))


def _token_end(text: str, end: int) -> int:
    """The end of a token; a known part of it ends at `end`."""
    return end if (rest := _TOKEN.match(text, end)) is None else rest.end()


def _cards_and_ibans(text: str) -> Iterator[Secret]:
    for match in _DIGITS.finditer(text):
        groups = match[0].replace("-", " ").split(" ")
        if len(groups) > 1 and min(map(len, groups)) < 3:
            continue  # a row of numbers
        number = [int(digit) for digit in match[0] if digit.isdigit()]
        doubled = [sum(divmod(2 * digit, 10)) for digit in number[-2::-2]]
        known = _ISSUER.match("".join(map(str, number[:4]))) is not None
        if known and (sum(number[-1::-2]) + sum(doubled)) % 10 == 0:
            yield Secret(*match.span(), "card number")
    for match in _IBAN.finditer(text):
        compact = match[0].replace(" ", "")
        digits = "".join(str(int(char, 36)) for char in compact[4:] + compact[:4])
        if 15 <= len(compact) <= 34 and int(digits) % 97 == 1:
            yield Secret(*match.span(), "IBAN")


def _private_keys(text: str) -> Iterator[Secret]:
    """PEM blocks (RFC 7468); an unterminated one extends to the end of the text."""
    position = 0
    while (begin := _PRIVATE_KEY.search(text, position)) is not None:
        end = _PRIVATE_KEY_END.search(text, begin.end())
        position = len(text) if end is None else end.end()
        yield Secret(begin.start(), position, "private key")
    if "Private-Lines:" in text:
        yield from (Secret(*match.span(), "private key") for match in _PUTTY_KEY.finditer(text))
