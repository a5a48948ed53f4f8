"""Secrets that their place gives away: values of secrets' names, headers, options and URLs, and what a sentence says.

A name says how much a value must look like a secret. After "password" any literal will do; after "token" it has letters
and digits; after another key it looks random. In a sentence the value is no ordinary word, in any language: the words
between it and the name need not be known, only the last one, such as "is" or "to".
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from recallite.text.patterns import lazily, read_tables, word_set

MASK = "\0"
"""The character that stands for each one of what was redacted before."""

Strength = Literal["password", "token", "number", "key", "account", "phrase"]
# How a value is given: as a literal, after a colon, after a verb of a sentence, or just after the name.
How = Literal["literal", "colon", "said", "beside"]
Span = tuple[int, int]

_MOST_NAME_CHARS = 40
_MOST_VALUE_CHARS = 200
_MOST_SAID_CHARS = 160
# A name may say something of what stands before the third name after it.
_MOST_NAMES = 3
_MOST_SAID_WORDS = 14
_COMPOUNDS = ("db", "user", "root", "admin", "smtp", "mail", "my", "sql", "ssh", "ftp", "store", "sudo")
# Words with another meaning: a pass, a word in Italian, a key in Spanish.
_OTHER_MEANINGS = ("pass", "parola", "clave")
# Words of SQL.
_QUOTED_ONLY = ("identified by", "identified_by")
_USERS = ("login", "user", "username", "account")
_OPENING = "\"'`“„«»‹‘‚「『"
_CLOSING = dict(zip(_OPENING, "\"'`”“»«›’‘」』", strict=True))
# Signs after a name: `"]` of a subscript, `**` of Markdown, "(staging)"; then a sign of assignment, and what leads to
# the value, which may be on the next line.
_ASSIGNED = lazily(
    r"[*_`\\\"'\])}”」]{0,4}(?:[ \t]{0,2}[(（][^()（）\n\0]{1,40}[)）])?[ \t]{0,24}"
    r"(?P<sign>:[ \t]?[A-Za-z_][\w.\[\]<>|?, ]{0,40}?[ \t]?=(?![=>~])|:=|={1,3}>?|:{1,2}|[：＝|→⇒])"
    r"[*_]{0,3}[ \t]{0,24}(?:[|>][+-]?(?=\r?\n))?(?:\r?\n[ \t]{0,24}(?:[-*>][ \t])?)?"
    r"(?:[*_\[({]{1,3}(?=\\{0,3}[\"'`“„«]))?\\{0,3}"
)
# setPassword("...") and <password>...</password>; {name: PASSWORD, value: ...} and <add key="Password" value="..."/>.
_CALLED = lazily(r"[ \t]{0,2}\([ \t]{0,3}(?=[\"'`])|>(?=[^\s<>\0]{1,200}</)")
_SECOND_ARGUMENT = lazily(r"[\"'],[ \t]{0,3}(?=[\"'])")
_VALUE_OF = lazily(r"(?i)\\?[\"']?\s{0,3},?\s{0,12}(?:-\s)?\\?[\"']?value\\?[\"']?[ \t]{0,3}[:=][ \t]{0,3}\\?")
_BARE = lazily(r"[^\s\0\"'`<>“”«»「」『』，。；、）]{1,200}")
_REST = lazily(r"[^\s\0\"'`<>“”«»「」『』，。；、）,;&|)]*")
_NEXT_FIELD = lazily(r"[,;&|](?:\s|$|[\"'{}\[\]\\]|[\w.-]{1,40}\s?[=:])")
_SCHEME = lazily(r"(?i)(?:bearer|basic|token|digest|negotiate|api-?key|key|jwt|ntlm|ssws)[ \t]+(?:token[ \t]+)?")
_PREFIXED_QUOTE = lazily(r"[bfrRuU@$]{1,2}(?=[\"'])")
_WORD = lazily(r"[^\s\0]{1,200}")
_SENTENCE_END = lazily(r"[.!?;]\s|[。！？\n\0]")
_UNSPACED_REST = lazily(r"(?P<between>[^\x00-\x7f「『“＂]{0,12}[ \t]?[「『“\"'＂:]?[ \t]?)(?P<value>[!-~]{4,100})")
_SAID_BEFORE = lazily(
    r"(?<![^\s\"'“`*])([^\s\0\"'“”`*]{6,60})[\"'”`*]{0,2}\s+(?:is|was|as|that's|ist|als|es|est|è|é|como|comme|come)\s+"
    r"(?:[^\s\0]{1,16}\s+){0,4}$"
)
# "creds: ada / ..." and "seed phrase: twelve words".
_ACCOUNT = lazily(r"[ \t]?\(?[:=]?[^\w\n\0]{0,4}[\w.@+-]{1,60}[ \t]{0,2}[/:|,][ \t]{0,2}([^\s\0/]{4,100})")
_ROW_OF_WORDS = lazily(
    r"[\"'*_`]{0,3}(?:\s(?:is|are))?\s?:?[\s\"'*_`“]{0,4}([a-z]{3,12}(?:[ ,-]{1,2}[a-z]{3,12}){3,23})(?![\w-])"
)
_COOKIE = lazily(r"(?i)(?:cookies?\d?[\"']?\s{0,2}[:=]?\s{0,2}|\s-b\s{1,4})[\"']?(?=[\w.$-]{1,60}=)")
_PAIR = lazily(r"([\w.$-]{1,60})=([^\s;,\"'\0]{1,4000});?[ \t]?")
_COOKIE_OPTIONS = frozenset(("path", "domain", "expires", "max-age", "samesite", "priority"))
# A password with "/" is no port and path.
_USER = lazily(
    r"(?P<user>[^\s/?#:@\"'<>`\0]{0,100}):"
    r"(?P<password>[^\s/?#\"'<>`\0]{1,200}|(?!\d{1,5}[/?#])[^\s\"'<>`\0]{1,200})@(?=[\w\[.-])"
)
_USER_TOKEN = lazily(r"(?P<password>[\w.~+-]{16,400})@(?=[\w\[])")
_HOOK = lazily(r"(?i)[^\s\"'<>`\0]{0,200}?hook[^\s\"'<>`\0/]{0,40}/[^\s\"'<>`\0]{8,2000}")
_PATH_PART = lazily(r"(?<=[/=])[\w~@-]{7,}")
_SIGNED = lazily(r"(?i)[?&;](?:[\w-]{0,20}-)?(?:sig|signature)=([\w%+/=.~-]{16,1000})")
# Short options that take a password, by the programs that have them, and the ones that take user:password. Whether
# such an option may be apart from its value: `mysql -p name` takes a database.
_OPTION = lazily(r"\s-(?P<option>[pPaw])(?P<gap>\s{0,4})[\"']?(?P<value>[^\s\"'\0]{3,200})")
_PROGRAMS = {
    "p": lazily(r"sshpass|mongo\w*|login|7z\w?"), "P": lazily(r"(?:un)?zip"),
    "a": lazily(r"redis-cli|valkey-cli"), "w": lazily(r"ldap\w+"),
}  # fmt: skip
_JOINED_PROGRAMS = lazily(r"mysql\w*|mariadb(?:-\w+)?|7z\w?")
_USER_OPTION = lazily(
    r"\s-(?:[uUa]|-(?:proxy-)?user|-(?:basic-)?auth|-creds?)(?:\s{1,4}|=)[\"']?[^\s:%\"'\0]{0,100}[:%]"
    r"(?P<value>[^\s\"'\0]{3,200})"
)
# auth=("user", "password") and login("user", "password").
_LOGIN = lazily(
    r"(?i)(?:auth|login|authenticate|credentials?)\w{0,20}\s?=?\s?\(\s{0,3}[\"'][^\"'\n\0]{1,80}[\"'],\s{0,3}[\"']"
    r"(?P<value>[^\s\"'\0]{3,200})[\"']"
)  # fmt: skip
# The private numbers of a key as JSON (RFC 7518, 6).
_JWK_NUMBER = lazily(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,3}:\s{0,3}\"([\w-]{20,2000})\"", re.ASCII)
# Programs whose -u and --user take a user and a group.
_OF_GROUPS = frozenset(("docker", "podman", "nerdctl", "compose", "exec", "rsync", "install", "setpriv", "systemd-run"))
_PLACEHOLDER = lazily(
    r"(?is)[<{\[].*|\$[A-Za-z_]\w*|\$[({].*|%\w+%|%[sdr]|%\(\w+\)s|(.)\1{2,}|[x*•.…_·-]+"
    r"|.*(?:xxxx|\*\*\*|\.\.\.|…|change[_-]?me|\{[\w.()\[\]!:]*\}|\$\{|\[[a-zA-Z]-|\\[swdb]).*|\(\?.*"
    r"|(?:your|my|insert|replace|enter|paste|put|use|the|some|any|example|sample|fake|dummy|test)(?:[-_ ]?[a-z]+)*"
    r"|(?:op|vault|secrets?|arn|env|file|ref|aws-sm|gcpsm|keyring|keychain):.*|ENC\[.*|!(?:Ref|Sub|GetAtt|secret)\b.*"
)
_EXPRESSION = lazily(
    r"[&*]?[A-Za-z_][\w.:]*[!?]?[(\[].*|[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]+)+;?|[A-Za-z_]+<.*|&'?\w+|[{}()\[\];]+.*|.*\][(.].*"
    r"|(?:process|os|env|self|this|config|settings|args|opts|options|request|req|ctx|params|data|user|input|form|var|local"
    r"|module|secrets|github|inputs)\.\w.*",
    re.DOTALL,
)
_IDENTIFIER = lazily(r"\w[\w.]*")
_FIELD = lazily(r"[A-Za-z_][\w.-]*=[^=]")
_PATH = lazily(
    r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w.@{}$-]*(?:[/\\][\w.@{}$-]*)*|[\w-]+(?:/[\w.-]+)*/[\w-]+\.[a-z]{1,5}"
    r"|[\w-]+\.[a-z]{2,5}\d?|[a-z][a-z0-9+.-]*://.*"
)
_ADDRESS = lazily(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}(?:['’]s)?|[@#][\w-]+")
# Numbers, dates, times, measures, versions.
_NUMBER = lazily(
    r"[v$€£#~±<>≥≤+]?\d[\d.,:/×–-]*(?:st|nd|rd|th|[%°+]|[A-Za-z]{1,3})?(?:/[a-z]+)?|\d{4}-\d\d-\d\dT[\d:.+Z-]+"
)
_PIECE = lazily(r"[^-–/_.,'’+&]+")
_PARTS = lazily(r"[^\W\d_]+|\d+")
_CAMEL = lazily(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SYMBOLS = frozenset("!@#$%^*~&+")
_HEX = lazily(r"(?:0x)?[0-9a-fA-F]+")
_DIGEST = lazily(r"(?i)(?:sha\d+|md5|h1)[:-]")
_UUID = lazily(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UNKNOWN = lazily(r"(?<![\w/+=.@:#-])[A-Za-z0-9][A-Za-z0-9_+/-]{19,}={0,2}(?![\w/+])")


class SecretName(NamedTuple):
    """A secret's name in a text: an identifier, what its word says of the value, and that word."""

    start: int
    stop: int
    strength: Strength
    word: str
    identifier: str
    is_english: bool = False
    is_unspaced: bool = False


@cache
def _tables() -> dict[str, frozenset[str]]:
    return {name: word_set(text) for name, text in read_tables(__file__).items()}


@cache
def _spellings(ascii_only: bool) -> dict[str, list[tuple[int, str, Strength, bool]]]:
    """The names of secrets by a part of each, which is looked for first: its offset, the name, and what it says."""
    tables = _tables()
    spelled: dict[str, tuple[Strength, bool]] = {"key": ("key", False)}
    strengths: tuple[Strength, ...] = ("password", "token", "number", "account", "phrase")
    for strength in strengths:
        for declined in (False, True):
            for word in tables.get(strength + "_declined" * declined, ()):
                for joint in (" ", "_", "-", "") if "_" in word[1:] else ("_",):
                    spelled[word[0] + word[1:].replace("_", joint)] = strength, declined
    longest = {word if word[0] == "_" else max(re.split(r"[ _-]", word), key=len) for word in spelled}
    parts = sorted(part for part in longest if not any(other in part for other in longest if other != part))
    names: dict[str, list[tuple[int, str, Strength, bool]]] = {part: [] for part in parts}
    for word, (strength, declined) in sorted(spelled.items(), key=lambda item: -len(item[0])):
        for part in parts:
            if part in word:
                names[part].append((word.index(part), word, strength, declined))
    return {part: spelled_so for part, spelled_so in names.items() if part.isascii() or not ascii_only}


def named_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """The places of what names, headers, options, URLs and sentences of a text give away, with their kinds."""
    lower = text.lower()
    if len(lower) != len(text):  # "İ" alone becomes two characters
        lower = text.replace("İ", "I").lower()
    done, names = 0, _names(text, lower)
    ends = [name.start for name in names[_MOST_NAMES:]] + [len(text)] * _MOST_NAMES
    for name, end in zip(names, ends, strict=False):
        for start, stop in _values(text, lower, name, end) if name.start >= done else ():
            done = max(done, stop)
            yield start, stop, _kind(name)
    if "cookie" in lower or " -b " in text:
        for start, stop in _cookies(text):
            yield start, stop, "cookie"
    if "://" in text:
        for start, stop in _of_addresses(text):
            yield start, stop, "password"
    if " -" in text:
        for start, stop in _of_options(text):
            yield start, stop, "password"
    if "(" in text and ("auth" in lower or "login" in lower or "credential" in lower):
        for match in _LOGIN.finditer(text):
            if _is_mixed(match["value"]) and not _is_placeholder(match["value"]):
                yield *match.span("value"), "password"
    if '"kty"' in text:
        for match in _JWK_NUMBER.finditer(text):
            yield *match.span(1), "private key"


def kind_of_field(name: str, value: str) -> str | None:
    """The kind of secret that the whole text of a field of this name is; None if it is none."""
    lower = name.lower()
    for known in _names(name, lower) if len(lower) == len(name) else ():
        if known.stop == len(name) and _is_secret(value, known, "literal", ""):
            return _kind(known)
    return None


def _kind(name: SecretName) -> str:
    return {"token": "key or token", "key": "key or token", "number": "PIN"}.get(name.strength, "password")


# Names.


def _names(text: str, lower: str) -> list[SecretName]:
    by_stop: dict[int, SecretName] = {}
    spellings_by_part = _spellings(text.isascii())
    for part in [part for part in spellings_by_part if part in lower]:
        spellings = spellings_by_part[part]
        position = lower.find(part)
        while position >= 0:
            for offset, word, strength, declined in spellings:
                begin = position - offset
                if begin >= 0 and lower.startswith(word, begin):
                    name = _identified(text, begin, word, strength, declined=declined)
                    if name is not None and (name.stop not in by_stop or len(by_stop[name.stop].word) < len(word)):
                        by_stop[name.stop] = name
                    break
            position = lower.find(part, position + len(part))
    return sorted(by_stop.values())


def _identified(text: str, begin: int, word: str, strength: Strength, *, declined: bool) -> SecretName | None:
    """A word with the identifier around it, unless that is another word or names something else."""
    start, end = begin, begin + len(word)
    if "\u0e00" <= word[-1] <= "\u0eff" or word[-1] >= "\u2e80":
        return SecretName(begin, end, strength, word, word, is_unspaced=True)
    first, last = max(0, begin - _MOST_NAME_CHARS), min(len(text), end + _MOST_NAME_CHARS)
    while start > first and (text[start - 1].isalnum() or text[start - 1] in "_-$"):
        start -= 1
    stop = end
    if declined:
        while stop < last and text[stop].isalpha():
            stop += 1
        return SecretName(start, stop, strength, word, text[start:stop]) if stop - end <= 6 else None
    while stop < last and text[stop].isascii() and (text[stop].isalnum() or text[stop] in "_-"):
        stop += 1
    stop = max(end, end + len(text[end:stop].rstrip("_-")))
    identifier, before, after = text[start:stop], text[start:begin], text[end:stop]
    is_assigned = text[stop : stop + 1] == "="
    # "dbPw" is one, the end of a text in base64 none.
    is_encoded = len(word) < 4 and (not before.isalpha() or text[start - 1 : start] in ("+", "/"))
    is_camel = before[-1:].islower() and text[begin].isupper() and not is_encoded
    if before[-1:].isalnum() and word[0] != "_" and not is_camel:
        # The last part of a compound: "accesstoken", "DBPASS=", but not "compass", "monkey" or "bypass".
        is_long = len(word) > 4 and strength != "number"
        if not (
            is_long or before.lower().endswith(_COMPOUNDS) or (is_assigned and identifier.isupper() and word != "pin")
        ):
            return None
    if after[:1].isalpha() and not (text[end - 1].islower() and after[0].isupper()) and after.lower() != "s":
        return None
    if after and (strength == "number" or (strength == "password" and len(word) < 4 and not after.isdecimal())):
        return None
    parts = {part.lower() for piece in (before, after) for part in _CAMEL.findall(piece)}
    is_id = word != "secret" and after.lower().strip("_-") in ("id", "ids")
    return (
        None
        if is_id or parts & _tables()["other_name_parts"]
        else SecretName(start, stop, strength, word, identifier, is_english=True)
    )


# Values.


def _values(text: str, lower: str, name: SecretName, end: int) -> Iterator[Span]:
    """The values that a name gives away; a sentence has to name them before `end`."""
    if name.strength == "phrase" or name.word == "passphrase":
        row = _ROW_OF_WORDS.match(text, name.stop)
        if row is not None and _is_phrase(row[1].split(), 12 if name.strength == "phrase" else 4):
            yield row.span(1)
            return
    if name.strength in ("account", "phrase"):
        account = _ACCOUNT.match(text, name.stop)
        span = None if account is None else _trimmed(text, *account.span(1))
        if span is not None and _is_secret(text[slice(*span)], name, "said", text[span[1] : span[1] + 24]):
            yield span
    elif name.is_unspaced:
        rest = _UNSPACED_REST.match(text, name.stop)
        span = None if rest is None else _trimmed(text, *rest.span("value"))
        if rest is not None and span is not None:
            how: How = "said" if rest["between"] else "beside"
            if _is_secret(text[slice(*span)], name, how, text[span[1] : span[1] + 24]):
                yield span
    elif (assigned := _ASSIGNED.match(text, name.stop)) is not None:
        sign = assigned["sign"]
        is_joined = assigned.start("sign") == name.stop
        is_close = is_joined and sign[-1] == "=" and not text[assigned.end() - 1].isspace()
        if is_joined and sign == "==" and not is_close:
            return  # the end of a text in base64
        yield from _given(text, assigned.end(), name, "colon" if sign[-1] in ":：|→" else "literal", is_close=is_close)
    elif (called := _CALLED.match(text, name.stop) or _VALUE_OF.match(text, name.stop)) is not None:
        yield from _given(text, called.end(), name, "literal", is_close=True)
    elif name.identifier.startswith(("--", "-store", "-key")) and text[name.stop : name.stop + 1] == " ":
        yield from _given(text, name.stop + 1, name, "literal", is_close=True)
    elif (
        text[max(0, name.start - 2) : name.start] in ("('", '("')
        and (second := _SECOND_ARGUMENT.match(text, name.stop)) is not None
    ):
        yield from _given(text, second.end(), name, "said", is_close=True)
    else:
        yield from _said(text, lower, name, end)
        if name.strength in ("password", "token"):  # and what looks random in the line after it
            limit = min(end, name.stop + _MOST_SAID_CHARS)
            line = text.find("\n", name.stop, limit)
            for unknown in _UNKNOWN.finditer(text, name.stop, limit + _MOST_VALUE_CHARS):
                if unknown.start() >= (limit if line < 0 else line):
                    break
                if _is_random(unknown[0]):
                    yield unknown.span()
        if name.strength == "password" and name.word not in ("pass", *_QUOTED_ONLY):
            before = _SAID_BEFORE.search(text, max(0, name.start - 120), name.start)
            if before is not None and _is_secret(before[1], name, "said", "") and _is_mixed(before[1]):
                yield before.span(1)


def _given(text: str, begin: int, name: SecretName, how: How, *, is_close: bool) -> Iterator[Span]:
    """The value that begins here, if it is a secret. `is_close`: it is joined to its name, as in a shell."""
    if (prefix := _PREFIXED_QUOTE.match(text, begin)) is not None:
        begin = prefix.end()
    scheme = _SCHEME.match(text, begin)
    begin = begin if scheme is None else scheme.end()
    quote = text[begin : begin + 1]
    if quote and quote in _OPENING:
        span = _quoted(text, begin)
        if span is not None:
            if scheme is None and (scheme := _SCHEME.match(text, *span)) is not None:
                span = scheme.end(), span[1]
            if _is_secret(text[slice(*span)], name, "said" if how == "said" else "literal", ""):
                yield span
            return
        begin += 1
    bare = _BARE.match(text, begin)
    if bare is None or quote == "{":
        return
    stop = bare.end()
    if (field := _NEXT_FIELD.search(text, begin + 1, stop + 1)) is not None:
        stop = field.start()
    span = _trimmed(text, begin, stop)
    if span is None:
        return
    value = text[slice(*span)]
    if ")" in value and value.find(")") < (value.find("(") if "(" in value else len(value)):
        span = begin, begin + value.index(")")  # the end of a call
        value = text[slice(*span)]
    is_literal = is_close or scheme is not None or quote in _CLOSING
    if not is_literal and not _is_mixed(value):
        line = text.rfind("\n", max(0, name.start - 40), name.start) + 1
        before = text[line : name.start] if line or name.start < 40 else "..."
        after = text[span[1] : span[1] + 4].lstrip("\"'`*_ \t,;|")
        is_alone = not before.strip(" \t-*>#\"'`|") and (not after or after[0] in "\r\n")
        if how != "colon" or not is_alone:
            return  # "password = value" of a program, "password: a word" of prose
    if _EXPRESSION.fullmatch(value) and not (is_literal and name.identifier.isupper() and "(" not in value):
        return
    if _is_secret(value, name, how, text[span[1] : span[1] + 24]):
        rest = _REST.match(text, span[1]) if len(value) == _MOST_VALUE_CHARS else None
        yield span if rest is None else (span[0], rest.end())


def _quoted(text: str, begin: int) -> Span | None:
    """The text between the quote mark here and the next one of its kind in the line."""
    closing, limit = _CLOSING[text[begin]], begin + 1 + _MOST_VALUE_CHARS
    is_escaped = text[begin - 1 : begin] == "\\"
    end = text.find(closing, begin + 1, limit)
    while end > 0 and text[end - 1] == "\\" and not is_escaped:
        end = text.find(closing, end + 1, limit)
    if end < 0 and (rest := _REST.match(text, begin + 1)) is not None and text.startswith(closing, rest.end()):
        end = rest.end()  # a long one, in one piece
    if end <= begin + 1 or "\n" in text[begin:end] or MASK in text[begin:end]:
        return None
    return begin + 1, end - (is_escaped and text[end - 1] == "\\")


def _trimmed(text: str, begin: int, stop: int) -> Span | None:
    """A bare value without the punctuation around it."""
    value = text[begin:stop]
    begin += len(value) - len(value.lstrip("([{\"'`*“„"))
    closing = "".join(close for opening, close in ("()", "[]", "{}") if opening not in text[begin:stop])
    value = text[begin:stop].rstrip(".,;:?\\*…\"'`”" + closing)
    return (begin, begin + len(value)) if value else None


def _said(text: str, lower: str, name: SecretName, end: int) -> Iterator[Span]:
    """The values that a sentence names after a secret's name: no ordinary words, after a word such as "is"."""
    begin = name.stop + (text[name.stop : name.stop + 1] in ('"', "'", "`", "*", "”", "»", ","))
    # "login ada password ...", as in a .netrc file.
    before = lower[max(0, name.start - 80) : name.start].split() if name.strength == "password" else []
    is_given = len(before) > 1 and before[-2].strip("-:") in _USERS
    is_given = is_given and before[-1].strip(",") not in (*_USERS, "and", "or", "&", "/", "name", "+")
    if not (text[begin : begin + 1].isspace() or lower.startswith("s ", begin)) or (
        name.word == "pass" and not is_given
    ):
        return
    if name.word in _QUOTED_ONLY and text[begin + 1 : begin + 2] not in ("'", '"'):
        return
    stop = min(end, begin + _MOST_SAID_CHARS)
    if (sentence := _SENTENCE_END.search(text, begin, stop)) is not None:
        stop = sentence.start() + 1
    is_quotable = begin == name.stop
    previous, done, first = "", begin, 0
    if lower.startswith(("'s ", "’s "), name.stop):
        previous, first = "is", 1
    for count, word in enumerate(_WORD.finditer(text, begin + first, stop), first):
        if count == _MOST_SAID_WORDS:
            return
        if word.start() >= done:
            is_another = done > begin and previous in _tables()["conjunctions"]
            how: How | None = "said" if is_another or _links(previous, count, name, lower) else None
            if not count:
                how = "literal" if is_given and (_is_mixed(word[0]) or text[name.stop] != ",") else "beside"
            elif how is None and name.strength == "password" and previous not in _tables()["before_others"]:
                how = "beside" if _is_tangled(word[0]) else None
            if how is not None and not (how == "beside" and name.strength == "key"):
                span = _span_said(text, word, name, how, is_quotable=is_quotable or how == "said")
                if span is not None:
                    yield span
                    done = span[1] + 1
        previous = word[0].lower()


def _links(previous: str, count: int, name: SecretName, lower: str) -> bool:
    """Whether a word of a sentence leads to the value: a verb, a colon; "to" after a verb, and not "password to"."""
    tables = _tables()
    weak = previous in tables["weak_linkers"]
    if not count or not (weak or previous in tables["linkers"]):
        return count > 0 and previous.endswith(":") and previous[0] not in _OPENING
    if not weak or (previous == "to" and (count > 1 or not name.is_english)):
        return True
    around = lower[max(0, name.start - 40) : name.start], lower[name.stop : name.stop + _MOST_SAID_CHARS // 2]
    return any(not tables["changes"].isdisjoint(part.split()) for part in around)


def _span_said(text: str, word: re.Match[str], name: SecretName, how: How, *, is_quotable: bool) -> Span | None:
    """The value that a word of a sentence is or begins."""
    if word[0][0] in _OPENING and is_quotable:
        span = _quoted(text, word.start())
        if span is not None:
            value = text[slice(*span)]
            return span if _is_secret(value, name, "literal" if name.strength == "password" else how, "") else None
    span = _trimmed(text, *word.span())
    if span is None or (value := text[slice(*span)]) == MASK:
        return None
    is_other = _EXPRESSION.fullmatch(value) or _FIELD.match(value)
    is_secret = not is_other and _is_secret(value, name, how, text[word.end() : word.end() + 24])
    return span if is_secret else None


# What is a secret.


def _is_secret(value: str, name: SecretName, how: How, following: str) -> bool:
    """Whether a value, before the text `following`, may be what the name says."""
    strength = name.strength
    if strength == "number":
        is_unit = how == "said" and following[:2].strip().isalpha()
        return value.isdecimal() and value.isascii() and 3 <= len(value) <= 8 and how != "beside" and not is_unit
    plain = value.lower().strip(".,;:!?()[]{}\"'+")
    if len(value) < 3 + value.isalpha() or (strength in ("token", "key") and not _is_mixed(value)) or MASK in value:
        return False
    if _is_placeholder(plain) or _is_placeholder(value):
        return False
    if " " in value:
        words = value.split()
        is_phrase = _is_phrase(words, 3) or any(_is_strong(word, "beside", "") for word in words)
        return strength == "password" and how == "literal" and is_phrase
    if strength == "key" or (how == "beside" and strength == "token"):
        is_id = _UUID.fullmatch(value) is not None or _HEX.fullmatch(value) is not None
        is_named = strength == "key" and len(name.identifier) > len("keys")
        return len(value) >= 16 and (_is_random(value) or (is_id and is_named and len(value) >= 32))
    if _PATH.fullmatch(value) and not (how == "literal" and _is_scattered(value)):
        return False
    if strength in ("password", "account"):
        if how == "literal":
            is_longer = name.identifier.isupper() or len(name.identifier) > len(name.word) + 1  # DB_PASS, not -pass
            is_sure = is_longer or name.word not in _OTHER_MEANINGS
            return is_sure or _is_mixed(value)
        return not value.isalpha() or len(value) >= 5 if how == "colon" else _is_strong(value, how, following)
    if len(value) < (6 if how == "literal" else 8) or _is_ordinary(value):
        return False
    return not _is_identifier(value) or (how == "literal" and name.word == "secret")


def _is_placeholder(value: str) -> bool:
    """Whether a value stands for one: a variable, "<token>", "your-key", "xxxx", a word for what it is."""
    return _PLACEHOLDER.fullmatch(value) is not None or value.lower() in _tables()["other_values"] or _is_name(value)


def _is_name(value: str) -> bool:
    """Whether a value is only the name of a secret: "password", my_token, Ed25519PrivateKey."""
    lower = value.lower()
    if len(value) > _MOST_NAME_CHARS or len(lower) != len(value) or not _IDENTIFIER.fullmatch(value):
        return False
    has_digit = any(map(str.isdigit, value))
    names = [name for name in _names(value, lower) if name.stop == len(value) and lower.endswith(name.word)]
    return any(not has_digit or value[-len(name.word)].isupper() for name in names)


def _is_mixed(value: str) -> bool:
    """Whether a value has letters and digits, signs that no word has, or digits alone."""
    has_letter, has_digit = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    if has_digit:
        return has_letter or (value.isdecimal() and len(value) >= 4)
    return any(map(_SYMBOLS.__contains__, value[1:-1])) or (len(value) >= 16 and _is_scattered(value))


def _is_strong(value: str, how: How, following: str) -> bool:
    """Whether a word of a sentence is no ordinary one."""
    if value.isdecimal():
        is_year = len(value) == 4 and value[:2] in ("19", "20")
        return how == "said" and len(value) >= 4 and not is_year and not following[:2].strip().isalpha()
    if len(value) < (4 if how == "said" else 6) or _is_ordinary(value):
        return False
    has_letter = any(map(str.isalpha, value))
    if any(map(str.isdigit, value)):
        return has_letter
    return has_letter and ((len(value) >= 6 and any(map(_SYMBOLS.__contains__, value[1:-1]))) or _is_scattered(value))


def _is_tangled(value: str) -> bool:
    """Whether letters and digits alternate as in no name of a host or a user."""
    parts = _PARTS.findall(value)
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(parts))
    return (
        len(value) > 6 and value.isascii() and changes > 1 and not _HEX.fullmatch(value) and not _UUID.fullmatch(value)
    )


def _is_ordinary(value: str) -> bool:
    """Whether a value with digits or signs is a usual one: a number, a date, an address, a term such as SHA-256."""
    if _NUMBER.fullmatch(value) or _ADDRESS.fullmatch(value) or _PATH.fullmatch(value):
        return True
    pieces = _PIECE.findall(value)
    is_phrase = len(pieces) > 2 and any(map(str.isdigit, value)) and value.isascii() and any(map(str.islower, value))
    for piece in pieces:
        parts = _PARTS.findall(piece)
        letters = [part.lower() for part in parts if part.isalpha()]
        if "".join(parts) != piece or len(parts) > 3 or (len(parts) == 1 and letters and _is_scattered(piece)):
            return False
        if len(parts) > 1 and not _tables()["technical"].issuperset(letters):
            return False
    return not is_phrase or not _tables()["technical"].isdisjoint(value.lower().split("-"))


def _is_identifier(value: str) -> bool:
    """Whether a value is made of words and a number, which no lower-case letter follows: some_name_2, uint256."""
    parts = _CAMEL.findall(value)
    numbers = [part for part in parts if part.isdigit()]
    joints = sum(map(value.count, "_-.:/"))
    if sum(map(len, parts)) + joints != len(value) or len(numbers) > 1 or any(len(number) > 5 for number in numbers):
        return False
    is_tangled = any(a.isdigit() and b.islower() for a, b in pairwise(value))
    return not is_tangled and (len(parts) < 4 or len(value) >= 4 * len(parts))


def _is_scattered(value: str) -> bool:
    """Whether upper and lower case alternate as in no word."""
    rises = sum(a.islower() and b.isupper() for a, b in pairwise(value))
    return rises > 1 and len(value) < 6 * rises and any(len(part) < 3 for part in _CAMEL.findall(value))


def _is_random(value: str) -> bool:
    """Whether a value of 16 characters or more looks random, and is no digest, id or path."""
    if len(value) < 16 or _DIGEST.match(value) or _UUID.fullmatch(value) or _HEX.fullmatch(value):
        return False
    if _is_identifier(value):
        return False
    digits = sum(map(str.isdigit, value))
    has_cases = any(map(str.islower, value)) and any(map(str.isupper, value))
    if digits < 2 or not any(map(str.isalpha, value)) or not (has_cases or digits > 3):
        return False
    shares = [count / len(value) for count in Counter(value).values()]
    entropy_bits = -sum(share * math.log2(share) for share in shares)
    is_path = value.count("/") > 2 + len(value) // 20
    return not is_path and len(_CAMEL.findall(value)) >= len(value) / 5 and entropy_bits > 3.2


def _is_phrase(words: list[str], least: int) -> bool:
    """Whether words are a passphrase: lower case, and without function words unless there are many."""
    if len(words) < least or not all(word.isalpha() and word.islower() for word in words):
        return False
    from recallite.text.words import STOP_WORDS

    return least > 11 or not any(word in STOP_WORDS or _is_name(word) for word in words)


# Headers, addresses, options.


def _cookies(text: str) -> Iterator[Span]:
    """The values of a Cookie or Set-Cookie header, and of an option that gives cookies."""
    end = 0
    for header in _COOKIE.finditer(text):
        position = max(end, header.end())
        while (pair := _PAIR.match(text, position)) is not None:
            position = end = pair.end()
            is_value = pair[1].lower() not in _COOKIE_OPTIONS and len(pair[2]) > 5 and not _is_placeholder(pair[2])
            if is_value and _is_mixed(pair[2]) and not _NUMBER.fullmatch(pair[2]):
                yield pair.span(2)


def _of_addresses(text: str) -> Iterator[Span]:
    """The passwords and signatures of URLs, and what is secret in the path of a webhook."""
    position = text.find("://")
    while position >= 0:
        begin, is_web = position + 3, text[max(0, position - 5) : position].lower().endswith(("http", "https"))
        position = text.find("://", begin)
        user = _USER.match(text, begin)
        token = _USER_TOKEN.match(text, begin) if is_web and user is None else None
        if user is not None and not _is_placeholder(user["password"]):
            yield user.span("password")
        # As long and random as a key, be it hexadecimal.
        if token is not None and (_is_random(token[1]) or (len(token[1]) >= 32 and _HEX.fullmatch(token[1]))):
            yield token.span(1)
        if is_web and (hook := _HOOK.match(text, begin)) is not None:
            for part in _PATH_PART.finditer(text, *hook.span()):
                is_long = len(part[0]) > 15 and any(map(str.isdigit, part[0])) and not part[0].isdecimal()
                if _is_tangled(part[0]) or (is_long and not _is_identifier(part[0])):
                    yield part.span()
    for signed in _SIGNED.finditer(text):
        yield signed.span(1)


def _of_options(text: str) -> Iterator[Span]:
    """The passwords that options of programs take: `-p password`, `-u user:password`."""
    for match in _OPTION.finditer(text):
        programs = _PROGRAMS[match["option"]] if match["gap"] else _JOINED_PROGRAMS
        if any(map(programs.fullmatch, _words_before(text, match.start()))) and not _is_placeholder(match["value"]):
            yield match.span("value")
    for match in _USER_OPTION.finditer(text):
        value = match["value"]
        of_group = value.isalpha() and not _OF_GROUPS.isdisjoint(_words_before(text, match.start()))
        if not (value.isdecimal() or of_group or value.startswith("/") or _is_placeholder(value)):
            yield match.span("value")


def _words_before(text: str, position: int) -> list[str]:
    first = max(0, position - _MOST_VALUE_CHARS)
    return text[max(first, text.rfind("\n", first, position)) : position].split()
