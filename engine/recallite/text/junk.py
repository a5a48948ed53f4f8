"""Junk: greetings, thanks, acknowledgements, empty agreement and tool noise, which say nothing that lasts. For English.

A text is small talk if it can be cut into phrases of a table without a word left over, so that "ok, my number is 555"
is none; a name is a word left over too. It is tool noise if every line is.
"""

from __future__ import annotations

import re

from recallite.text.patterns import lazily, read_tables

_TABLES = read_tables(__file__)
_LONGEST_CHARS = 160
_WORD = lazily(r"[^\W_]+(?:'[^\W_]+)*")
_REPEATED = lazily(r"(.)\1{2,}")
# Marks that say something: "C#", "$5", "a@b", "x = y", "+1", "~/x". A digit does too.
_MEANING = lazily(r"[#$€£¥@=%+~\\/<>|{}\[\]^0-9]")


def _phrases(table: str) -> frozenset[tuple[str, ...]]:
    return frozenset(
        tuple(phrase.split()) for line in table.splitlines() for phrase in line.split(";") if phrase.strip()
    )


_SMALL_TALK = _phrases(_TABLES["phrases"])
# They are small talk only beside a phrase of it.
_BESIDE = _phrases(_TABLES["manners"]) - _SMALL_TALK
_MOST_WORDS = max(map(len, _SMALL_TALK))
_KNOWN_WORDS = frozenset(word for phrase in _SMALL_TALK | _BESIDE for word in phrase)

_THING = (
    r"(?:results?|match(?:es)?|output|entr(?:y|ies)|records?|items?|data|files?|rows?|changes?|documents?|hits?|response"
    r"|content|memories|messages?|value|text)"
)
_DOING = (
    r"(?:(?:down|up|re)?loading|installing|building|compiling|processing|fetching|indexing|searching|thinking|running"
    r"|waiting|connecting|starting|initiali[sz]ing|reading|writing|analy[sz]ing|generating|resolving|linking|scanning"
    r"|extracting|unpacking|syncing|saving|updating|checking|working|executing|parsing|preparing|retrying|calling)"
)
# What a tool works on that says nothing about what it is: "Installing dependencies...", not "Reading Dune...".
_ON = (
    r"(?: (?:for|the|a|your|to|from|on|and|it|all|dependenc(?:y|ies)|packages?|modules?|files?|data|index(?:es)?"
    r"|models?|requests?|response|results?|images?|project|input|output|servers?|database|connection|cache|assets|updates?"
    r"|quer(?:y|ies)|documents?|environment|tests?|pages?|web|config(?:uration)?|settings|workspace|repository|tools?"
    r"|metadata|layers?|objects?|deltas?|schema|command|code|script)){0,4}"
)
_DID = r"(?:done|success|succeeded|completed?|finished|ready|saved|updated|deleted|created|ok|okay|passed|executed)"
_NOISE = lazily(
    "(?i)"
    + "|".join(
        [
            r"null|none|undefined|nan|nil|void|true|false|n/?a|empty|failed",
            r"asdf\w{0,9}|qwerty|test(?:ing)?(?: \d){1,3}",
            rf"(?:no|0|zero) (?:(?:matching|relevant|search|more|new|further|other|such) )?{_THING}"
            r"(?: (?:(?:were|was) )?(?:found|returned|available|matched|affected|to (?:show|display|report|commit)))?",
            r"(?:nothing|none) (?:found|to (?:do|show|report|commit|display))|not found|no errors?|command not found",
            r"(?:(?:process|command|program) )?(?:exit(?:ed)?|finished|returned)(?: with)?(?: exit)? (?:code|status):?"
            r" ?-?\d{1,4}",
            r"(?:the )?(?:command|operation|task|tool|function|(?:tool|function) call|request|process|script|job|action"
            rf"|step|build|query)(?: (?:was|is|has|has been|ran|run))? (?:successful(?:ly)?|{_DID})(?: successfully)?",
            rf"(?:tool )?successful(?:ly)?(?: {_DID})?",
            rf"{_DID}(?: successfully| in \d{{1,6}}(?:\.\d{{1,4}})? ?m?s(?:econds?)?)?",
            r"(?:http(?:/\d(?:\.\d)?)? )?20[014] (?:ok|created|no content)",
            rf"(?:still )?{_DOING}{_ON} ?(?:\.{{2,6}}|…) ?(?:\d{{1,3}}(?:\.\d)? ?%|done|ok)?",
            r"(?:please )?wait(?:ing)?(?: \w{1,9})? ?(?:\.{2,6}|…)|please wait",
            rf"(?:{_DOING}|progress|status):? ?\d{{1,3}}(?:\.\d{{1,2}})? ?%(?: (?:done|completed?))?",
            r"\d{1,3}(?:\.\d)? ?% (?:done|completed?)",
            r"(?:step|attempt|retry|page|iteration|epoch|batch) \d{1,6} ?(?:/|of) ?\d{1,6}(?: ?(?:\.{2,6}|…|done|ok))?",
            r"(?:tool|function)[_ ](?:call|use|result|output|response)s?|(?:no|empty) (?:output|result|response)",
        ]
    )
)
# A bar of progress: "45%|####    | 45/100 [00:10<00:12, 4.5it/s]", "[=====>   ] 50%".
_BAR = lazily(r"(?:[^|\[\]:]{0,40}: ?)?\d{0,3} ?%? ?[|\[][#=█▏▎▍▌▋▊▉░▒▓> .-]{3,120}[|\]][0-9a-z/%.:,<\[\]? ]{0,60}")
_JSON = lazily(
    r'\{(?:\s*"(?:status|success|ok|result|results|data|items|output|rows|matches|errors?|count|total|message|stdout|stderr'
    r'|exit_code|returncode)"\s*:\s*(?:true|false|null|\[\s*\]|\{\s*\}|0|"(?:ok|success|done|completed)?")\s*(?:,|(?=\}))){1,8}\s*\}',
    re.IGNORECASE,
)
_LOG_LEVEL = lazily(r"(?i)[\[(]?(?:info|debug|trace|notice)[\])]?:? ")
_BRACKETS = "[](){}<>«»\"'`"
_MARKS = " \t⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏✓✔✅☑✗✘•·●*>$-"


def is_junk(text: str) -> bool:
    """Whether a text is only small talk or tool noise."""
    text = text.strip()
    if _is_small_talk(text) or _JSON.fullmatch(text[: 4 * _LONGEST_CHARS]) is not None:
        return True
    for line in text.splitlines():
        if not any(map(str.isalnum, line)):
            continue
        if len(line) > _LONGEST_CHARS:
            return False
        bare = line.strip().strip(_MARKS)
        level = _LOG_LEVEL.match(bare)
        bare = (bare if level is None else bare[level.end() :]).strip(_BRACKETS)
        if not (_BAR.fullmatch(line.strip()) or _NOISE.fullmatch(bare) or _NOISE.fullmatch(bare.rstrip(".!… "))):
            return False
    return True


def _is_small_talk(text: str) -> bool:
    """Whether a text is phrases of the table in a row."""
    if len(text) > _LONGEST_CHARS or _MEANING.search(text):
        return False
    words = []
    for word in _WORD.findall(text.replace("’", "'").lower()):
        # Without lengthening: "yesss" is "yes", "goooood" is "good".
        forms = word, _REPEATED.sub(r"\1", word), _REPEATED.sub(r"\1\1", word)
        if (plain := next(filter(_KNOWN_WORDS.__contains__, forms), None)) is None:
            return False
        words.append(plain)
    # How the words up to each place were cut: 0 not at all, 1 without small talk, 2 with a phrase of it.
    reached = [1] + [0] * len(words)
    for start, before in enumerate(reached):
        for stop in range(start + 1, min(start + _MOST_WORDS, len(words)) + 1) if before else ():
            phrase = tuple(words[start:stop])
            if phrase in _SMALL_TALK:
                reached[stop] = 2
            elif phrase in _BESIDE:
                reached[stop] = max(reached[stop], before)
    return reached[-1] == 2
