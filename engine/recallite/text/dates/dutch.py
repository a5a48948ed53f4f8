"""Dutch."""

from __future__ import annotations

from recallite.text.dates.language import Language, TenseCues, numbered, words
from recallite.text.dates.periods import COMING, LAST, NEXT, THIS

_MONTHS = (
    "januari/jan februari/feb maart/mrt april/apr mei juni/jun juli/jul augustus/aug september/sept/sep oktober/okt"
    " november/nov december/dec"
)
_WEEKDAYS = "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"
_HAVE = r"\b(?:[Hh]eb|[Hh]ebt|[Hh]eeft|[Hh]ebben|[Bb]en|[Bb]ent|[Ii]s|[Zz]ijn)\b"
_PARTICIPLE = r"\b(?:[a-z]{2,6})?(?:ge[a-zë]{2,}|(?:be|ver|er|ont|her)[a-z]{2,})(?:t|d|en|n)\b"

DUTCH = Language(
    code="nl",
    months=numbered(_MONTHS, 1),
    weekdays=numbered(_WEEKDAYS, 0),
    seasons={"lente": 3, "voorjaar": 3, "zomer": 6, "herfst": 9, "najaar": 9, "winter": 12},
    units={
        "dag": "day", "dagen": "day", "nacht": "day", "nachten": "day", "weekend": "weekend", "weekenden": "weekend",
        "week": "week", "weken": "week", "maand": "month", "maanden": "month", "kwartaal": "quarter", "jaar": "year",
        "jaren": "year", "decennia": "decade",
    },
    parts=("nacht", "avond", "ochtend", "morgen", "middag"),
    which={
        "vorig": LAST, "vorige": LAST, "afgelopen": LAST, "laatste": LAST, "verleden": LAST, "dit": THIS, "deze": THIS,
        "volgend": NEXT, "volgende": NEXT, "komend": COMING, "komende": COMING, "aanstaande": COMING,
    },
    named={
        "eergisteren": -2, "gisteren": -1, "gisteravond": -1, "gisterochtend": -1, "gistermiddag": -1,
        "vandaag": 0, "vanavond": 0, "vanochtend": 0, "vanmorgen": 0, "vanmiddag": 0, "morgen": 1, "morgenavond": 1,
        "morgenochtend": 1, "morgenmiddag": 1, "overmorgen": 2,
    },
    numbers={
        "een": 1, "twee": 2, "drie": 3, "vier": 4, "vijf": 5, "zes": 6, "zeven": 7, "acht": 8, "negen": 9, "tien": 10,
        "elf": 11, "twaalf": 12, "een paar": 3, "enkele": 3,
    },
    vague=("een paar", "enkele"),
    edges={"begin": 0, "half": 1, "midden": 1, "eind": 2, "einde": 2},
    patterns={
        "days": (
            r"\b(?:van |tussen )?(?P<first>\d\d?) ?(?:-|\u2013|tot(?: en met)?|t/m"
            r"|en) ?{day} {month}\b(?:,? {year}\b)?",
        ),
        "date": (
            r"\b(?P<time>{weekday},? {day} {month}\b(?:,? {year}\b)?)",
            r"\b(?P<time>{day} {month}\b(?:,? {year}\b)?)",
        ),
        "edge": (
            r"\b(?P<time>{edge} {month}\b(?: {year}\b)?)(?! ?\d)", r"\b(?P<time>{edge} {year})(?![\w-])",
        ),
        "month_of_year": (
            r"\b(?P<time>{month} (?:van )?{which} jaar)\b", r"\b(?P<time>{season} (?:van )?{which} jaar)\b",
        ),
        "month_year": (r"\b(?P<time>{month} {year}\b)",),
        "quarter": (r"\b[kq](?P<quarter>[1-4]) (?:van )?{year}\b",),
        "season_year": (r"\b(?P<time>{season} (?:van )?{year}\b)",),
        "weekday_of_week": (
            r"\b(?P<time>{which} week,? (?:op )?{weekday})\b", r"\b(?P<time>{weekday} {which} week)\b",
        ),
        "ago": (r"\b(?P<time>{number} {unit} geleden)\b",),
        "ahead": (r"\b(?P<time>over {number} {unit})\b",),
        "within": (r"\b(?P<time>{which} {number} {unit}\b)",),
        "named": (r"(?<!goede )(?<!de )(?<!elke )(?<!iedere )\b(?P<time>{named})\b",),
        "part": (r"\b(?P<time>(?P<which>vorige|afgelopen|deze) {part})\b",),
        "near": (r"\b(?P<time>{which} {what})\b(?! van\b)",),
        "weekday": (r"\b(?P<time>{weekday})(?:avond|ochtend|middag|nacht|morgen)?\b",),
        "weekend": (r"\bin (?P<time>het weekend)\b(?! van)",),
        "month": (r"\b(?:in|sinds|tot|vanaf|van|tussen|en)(?: de maand)? (?P<time>{month})\b",),
        "season": (r"\b(?:in de|in het|sinds de|deze|van de) (?P<time>{season})\b",),
        "year": (r"\b(?:in|sinds|tot|vanaf|van|tussen|en|jaar) (?P<time>{year})(?![\w-])",),
        "decade": (r"\bin de (?P<time>jaren '?(?P<century>19|20)?(?P<decade>[1-9]0))\b",),
    },
    limit=(
        r"(?:(?P<since>sinds)|(?P<start>vanaf|met ingang van)|(?P<after>na)|(?P<before>voor)"
        r"|(?P<until>tot(?: en met)?|t/m)"
        r"|(?P<by>uiterlijk)|(?P<range>van|tussen)|(?P<joint>en)) (?:de |het |op )?"
    ),
    onward=r" af\b",
    joint=r" ?(?:en|tot(?: en met)?|t/m|-|\u2013) ?(?:de |het )?",
    function_words=words(
        "de het een en in van is ik je hij zij wij we ze dat die niet op te met voor aan om mijn zijn haar ons"
        " naar er maar"
        " was waren had heb heeft hebben ben bij ook uit nog wordt werd zal ga gaat gaan"
    ),
    cues=TenseCues(
        past=(
            r"\b(?:[Ww]as|[Ww]aren|[Hh]ad|[Hh]adden|[Ww]erd|[Ww]erden|ging(?:en)?|kwam(?:en)?|zag(?:en)?"
            r"|kocht(?:en)?|bracht(?:en)?"
            r"|dacht(?:en)?|reed|reden|vloog|vlogen|at|aten|las|lazen|schreef|sprak|spraken|vond|vonden|kreeg"
            r"|kregen|begon"
            r"|begonnen|bleef|nam|namen|gaf|gaven|stierf|verhuisde|werkte|woonde|leerde|speelde|trouwde|ontmoette"
            r"|bezocht"
            r"|maakte|belde|zei|kon|moest|wilde|startte|regende)\b"
            rf"|{_HAVE}(?=[^!?;]{{0,100}}?(?:{_PARTICIPLE}))"
        ),
        ahead=(
            r"\b(?:[Zz]al|[Zz]ullen|[Gg]a|[Gg]aat|[Gg]aan|moet|moeten|wil|willen|begint|start|eindigt|vertrekt"
            r"|vertrekken|opent"
            r"|afspraak|deadline|plan|plannen|verwacht|laten we|hoop)\b"
        ),
        either=(
            rf"\b(?:zou|zouden|besloten|besloot|beloofde)\b"
            rf"|{_HAVE}(?=[^!?;]{{0,100}}?\b(?:gepland|geboekt|gereserveerd|afgesproken|besloten|beloofd|gesloten"
            rf"|geopend)\b)"
        ),
    ),
    recurring=(
        r"\b(?:elke|iedere|elk|ieder|alle|(?:meer|minder) dan|minstens)(?: twee)? $|\b(?P<plain>een|op een|die"
        r"|zwarte|goede) $"
    ),
    habit=r"\b(?:elke|iedere|elk|ieder|altijd|vaak|meestal|normaal|soms|gewoonlijk|dagelijks|wekelijks|jaarlijks)\b",
    yearly=r"(?:verjaardag|jarig|trouwdag|jubileum|kerst)",
    unreal=r"\b(?:als|indien|zou|zouden|roman|in plaats van|stel je voor|speelt zich af)\b",
    moving=r"(?:verplaats|verschoven|verzet|gewijzigd|veranderd|uitgesteld)",
)  # fmt: skip
