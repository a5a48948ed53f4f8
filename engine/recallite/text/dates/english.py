"""English."""

from __future__ import annotations

from recallite.text.dates.english_tense import cues
from recallite.text.dates.language import Language, numbered, words
from recallite.text.dates.periods import COMING, LAST, NEXT, THIS

_MONTHS = (
    "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep october/oct"
    " november/nov december/dec"
)
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"

# May, march, April, fall and years are other words, names and numbers too: alone they need one of these before them.
_THE = r"(?:the |year |(?:early|mid|late)[ -])?"
_BEFORE = r"\b(?:in|since|during|until|till|by|before|after|from|to|through|throughout|between|and|around)[ -]" + _THE
_ASKED_BEFORE = r"\b(?:of|over|for|early|mid|late|the|year|my|our)[ -]" + _THE
_WHICH_YEAR = r"(?:of )?(?P<which>last|this|next) year"

ENGLISH = Language(
    code="en",
    months=numbered(_MONTHS, 1),
    weekdays=numbered(_WEEKDAYS, 0),
    seasons={"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12},
    units={
        "day": "day", "days": "day", "night": "day", "nights": "day", "weekend": "weekend", "weekends": "weekend",
        "week": "week", "weeks": "week", "fortnight": "fortnight", "fortnights": "fortnight", "month": "month",
        "months": "month", "quarter": "quarter", "year": "year", "years": "year", "decade": "decade",
        "decades": "decade",
    },
    parts=("night", "morning", "afternoon", "evening"),
    which={
        "last": LAST, "past": LAST, "previous": LAST, "this past": LAST, "this": THIS, "next": NEXT, "coming": COMING,
        "this coming": COMING, "upcoming": COMING,
    },
    named={
        "the day before yesterday": -2, "day before yesterday": -2, "the night before last": -2, "yesterday": -1,
        "today": 0, "tonight": 0, "tomorrow": 1, "the day after tomorrow": 2, "day after tomorrow": 2,
    },
    weeks={"the week before last": -2, "the week after next": 2},
    numbers={
        "a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4, "one": 1, "two": 2,
        "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
        "twelve": 12,
    },
    vague=("a couple of", "couple of", "a few", "few", "several"),
    edges={
        "early": 0, "mid": 1, "late": 2, "beginning of": 0, "start of": 0, "middle of": 1, "end of": 2,
    },
    patterns={
        "days": (
            r"\b(?:from (?:the )?)?(?P<first>\d\d?)(?:st|nd|rd|th)? ?(?:-|\u2013|to|and|until) ?(?:the )?{day}"
            r" (?:of )?{month}\b(?:\.?,? (?:of )?{year}\b)?",
            r"\b{month}\b\.? (?:the )?(?P<first>\d\d?)(?:st|nd|rd|th)? ?(?:-|\u2013|to"
            r"|until) ?(?:the )?{day}\b(?![:.]\d)"
            r"(?:,? {year}\b)?",
        ),
        "date": (
            r"\b(?P<time>{weekday},? (?:the )?{day} (?:of )?{month}\b(?:\.?,? (?:of )?{year}\b)?)",
            r"\b(?P<time>{weekday},? {month}\b\.? (?:the )?{day}\b(?![:.]\d)(?:,? {year}\b)?)",
            r"\b(?P<time>{day} (?:of )?{month}\b(?:\.?,? (?:of )?{year}\b)?)",
            r"\b(?P<time>{month}\b\.? (?:the )?{day}\b(?![:.]\d)(?:,? {year}\b)?)",
        ),
        "edge": (
            r"\b(?P<time>{edge}[ -]{month}\b(?:\.?,? (?:of )?{year}\b)?)(?! ?\d)",
            r"\b(?P<time>{edge}[ -]{year})(?![\w-])",
        ),
        "month_of_year": (rf"\b(?P<time>{{month}} {_WHICH_YEAR})\b", rf"\b(?P<time>{{season}} {_WHICH_YEAR})\b"),
        "month_year": (r"\b(?P<time>{month}\b\.?,? (?:of )?{year}\b)",),
        "quarter": (r"\b(?P<time>q(?P<quarter>[1-4]) (?:of )?{year}\b)",),
        "season_year": (r"\b(?P<time>{season} (?:of )?{year}\b)",),
        "weekday_of_week": (
            r"\b(?P<time>{weekday} (?:of )?(?P<which>last|this|next) week)\b",
            r"\b(?P<time>(?P<which>last|this|next) week,? (?:on )?{weekday})\b",
        ),
        "ago": (r"\b(?P<time>{number} {unit} ago\b)",),
        "from_now": (
            r"\b(?P<time>{number} {unit} from (?:now|today)\b)", r"\b(?P<time>in {number} {unit}(?:'s|')? time\b)"),
        "ahead": (r"\b(?P<time>in {number} {unit})\b",),
        "within": (
            r"\b(?P<time>{which} {number} {unit}\b)",
            r"\b(?:in|over|during|for|within) the (?P<time>(?P<which>last|past) {unit})\b(?! of)",
        ),
        "weeks": (r"\b(?P<time>{weeks}\b)",),
        "named": (r"\b(?P<time>{named}\b)",),
        "part": (r"\b(?P<time>(?P<which>last|this) {part}\b)",),
        "near": (r"\b(?P<time>{which} {what}\b)(?! of\b)",),
        "weekend": (r"\b(?:at|on|over|during) (?P<time>the weekend)\b(?! (?:of|after|before))",),
        "weekday": (r"\b(?P<time>{weekday})\b",),
        "month": (_BEFORE + r"(?P<time>{month})\b",),
        "season": (_BEFORE + r"(?P<time>{season})\b(?! of)",),
        "year": (_BEFORE + r"(?P<time>{year})(?![\w-])",),
        "decade": (r"\bin the (?P<time>(?:early |mid |late )?(?P<century>19|20)?'?(?P<decade>[1-9]0)'?s)\b",),
    },
    asked={
        "month": (_ASKED_BEFORE + r"(?P<time>{month})\b",),
        "season": (_ASKED_BEFORE + r"(?P<time>{season})\b(?! of)",),
        "year": (_ASKED_BEFORE + r"(?P<time>{year})(?![\w-])",),
    },
    literals={
        "month_of_year": (" year",), "weekday_of_week": (" week",), "ago": (" ago",),
        "from_now": (" from now", " from today", " time"), "ahead": ("in ",), "weeks": ("the week ",),
        "weekend": ("the weekend",), "named": ("yesterday", "today", "tonight", "tomorrow", "the night before last"),
        "edge": ("early", "mid", "late", "beginning of", "start of", "end of"),
    },
    limit=(
        r"(?:(?P<since>since)|(?P<start>as of|starting|effective|beginning)|(?P<after>after)|(?P<before>before)"
        r"|(?P<until>until|till)|(?P<through>through)|(?P<by>by)|(?P<range>from|between)|(?P<joint>and|to))"
        r" (?:on |the |in |early |mid[ -]|late )?(?:year )?"
    ),
    onward=r",? (?:on\b(?!ly)|onwards?\b|and (?:on|later)\b)",
    joint=r" ?(?:and|to|until|till|through|-|\u2013) ?(?:the |year )?",
    function_words=words(
        "a an the and is was were are i my we our you he she it they his her of to in on at for with from that"
        " this have has"
        " had will not but be been"
    ),
    day_first=None,
    cues=cues,
    recurring=(
        r"\b(?:(?:every|each|any|(?:more|less) than|over|at least)(?: (?:other|second|single))?"
        r"|(?<!\bas )(?<!morning )(?<!afternoon )(?<!evening )(?<!night )(?<!day )of(?: the)?"
        r"|(?P<plain>most|some|one|that|same|good|black|ash|cyber|super|a|first|last|my|our|your|his|her|their)) $"
    ),
    habit=(
        r"\b(?:every|each|always|usually|often|typically|normally|generally|regularly|sometimes|annual(?:ly)?"
        r"|yearly|monthly|weekly|daily|once an?|twice an?|tends?)\b"
    ),
    yearly=r"\b(?:birthdays?|anniversar(?:y|ies)|holidays? (?:is|are)|never|christmas|falls)\b",
    unreal=(
        r"\b(?:if|unless|wish|wishes|wished|would|wouldn't|suppose|imagine|imagined|hypothetically|what if|as if"
        r"|pretend|dream(?:t|ed)?|novel|fictional?|set in|takes place in|instead of|rather than|not until"
        r"|no longer than)\b"
    ),
    moving=r"\b(?:mov|chang|postpon|reschedul|switch|shift|push|delay|brought|bring|swap|correct|updat)\w*\b",
)  # fmt: skip
