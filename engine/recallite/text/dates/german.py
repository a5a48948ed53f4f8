"""German."""

from __future__ import annotations

from recallite.text.dates.language import Language, TenseCues, numbered, words
from recallite.text.dates.periods import COMING, LAST, NEXT, THIS

_MONTHS = (
    "januar/janner/jan februar/feber/feb marz/maerz/mrz april/apr mai juni/jun juli/jul august/aug september/sept/sep"
    " oktober/okt november/nov dezember/dez"
)
_WEEKDAYS = "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag"
_STEMS = {
    "letzt": LAST, "vorig": LAST, "vergangen": LAST, "dies": THIS, "nachst": NEXT, "naechst": NEXT, "kommend": COMING,
}  # fmt: skip
_ENDINGS = ("e", "en", "er", "es", "em")
_HAVE = r"\b[Hh]ab(?:e|en|t)?\b|\b[Hh]a(?:st|t)\b|\b(?:[Bb]in|[Bb]ist|[Ii]st|[Ss]ind|[Ss]eid)\b"
_PARTICIPLE = (
    r"\b(?:[a-zäöü]{2,8})?(?:ge[a-zäöüß]{2,}|(?:be|ver|er|ent|zer|unter|über)[a-zäöüß]{2,})(?:t|en)\b"
    r"|\b[a-zäöü]{2,}iert\b"
)
# Of these, done in the past, the time may be that of what was decided; or they tell a state.
_OPEN = (
    r"(?:geplant|vorgenommen|gebucht|verabredet|vereinbart|reserviert|beschlossen|versprochen|angesetzt|verschoben"
    r"|geschlossen|gesperrt|eingeladen|bestellt|entschieden|gesagt|vorgesehen)\b"
)

GERMAN = Language(
    code="de",
    months=numbered(_MONTHS, 1),
    weekdays=numbered(_WEEKDAYS, 0),
    seasons={"fruhling": 3, "fruhjahr": 3, "fruehling": 3, "sommer": 6, "herbst": 9, "winter": 12},
    units={
        "tag": "day", "tage": "day", "tagen": "day", "woche": "week", "wochen": "week", "wochenende": "weekend",
        "wochenenden": "weekend", "monat": "month", "monate": "month", "monaten": "month", "quartal": "quarter",
        "jahr": "year", "jahre": "year", "jahren": "year", "jahrzehnten": "decade",
    },
    parts=("nacht", "abend", "morgen", "vormittag", "nachmittag"),
    which={stem + ending: which for stem, which in _STEMS.items() for ending in _ENDINGS},
    named={
        "vorgestern": -2, "gestern": -1, "heute": 0, "morgen": 1, "ubermorgen": 2, "uebermorgen": 2,
    },
    weeks={"vorletzte woche": -2, "vorletzter woche": -2, "ubernachste woche": 2, "ubernachster woche": 2},
    numbers={
        "einem": 1, "einer": 1, "ein": 1, "eine": 1, "zwei": 2, "drei": 3, "vier": 4, "funf": 5, "sechs": 6,
        "sieben": 7, "acht": 8, "neun": 9, "zehn": 10, "elf": 11, "zwolf": 12, "ein paar": 3, "einigen": 3,
        "wenigen": 3,
    },
    vague=("ein paar", "einigen", "wenigen"),
    edges={"anfang": 0, "beginn": 0, "mitte": 1, "ende": 2},
    patterns={
        "days": (
            r"\b(?:vom )?(?P<first>\d\d?)\.? ?(?:-|\u2013|bis(?: zum)?|und) ?{day} ?{month}\b(?:,? {year}\b)?",
        ),
        "date": (
            r"\b(?P<time>{weekday},? (?:(?:dem|den|der) )?{day} ?{month}\b(?:,? {year}\b)?)",
            r"\b(?P<time>{day} ?{month}\b(?:,? {year}\b)?)",
        ),
        "edge": (
            r"\b(?P<time>{edge} (?:des )?{month}\b(?:,? {year}\b)?)(?! ?\d)",
            r"\b(?P<time>{edge} (?:des jahres )?{year})(?![\w-])",
        ),
        "month_of_year": (
            r"\b(?P<time>{month} (?:des )?{which} jahres)\b", r"\b(?P<time>{season} (?:des )?{which} jahres)\b",
        ),
        "month_year": (r"\b(?P<time>{month}\b\.?,? (?:des jahres )?{year}\b)",),
        "quarter": (r"\b(?P<time>q(?P<quarter>[1-4]) {year}\b)",),
        "season_year": (r"\b(?P<time>{season} {year}\b)",),
        "weekday_of_week": (
            r"\b(?P<time>{weekday} {which} woche)\b", r"\b(?P<time>{which} woche,? (?:am )?{weekday})\b",
        ),
        "ago": (r"\b(?P<time>vor {number} {unit}\b)",),
        "ahead": (r"\b(?P<time>in {number} {unit})\b",),
        "within": (r"\b(?P<time>{which} {number} {unit}\b)",),
        "weeks": (r"\b(?P<time>{weeks})\b",),
        "named": (
            r"\b(?P<time>{named} (?:fruh|morgen|vormittag|mittag|nachmittag|abend|nacht))\b",
            r"(?<!am )(?<!der )(?<!den )(?<!guten )(?<!jeden )(?<!eines )(?<!diesen )(?<!von"
            r" )\b(?P<time>{named})\b(?!-)",
        ),
        "part": (r"\b(?P<time>{which} {part})\b",),
        "near": (r"\b(?P<time>{which} {what})\b(?! (?:des|der|im)\b)",),
        "weekday": (r"\b(?P<time>{weekday})(?:abend|nacht|morgen|mittag|nachmittag|vormittag)?\b",),
        "weekend": (r"\b(?:am|ubers|uber das) (?P<time>wochenende)\b",),
        "month": (r"\b(?:im|seit|bis|ab|von|zwischen|und)(?: monat)? (?P<time>{month})\b",),
        "season": (r"\b(?:im|seit dem|bis zum|ab dem) (?P<time>{season})\b",),
        "year": (
            r"\b(?:jahre?|in|seit|bis|ab|von|zwischen|und) (?P<time>{year})(?![\w-])",
            r"\b(?:wurden?|waren?|bin|ist|sind|habe|haben|hat|hatte"
            r"|hatten)(?: [^\W\d]+){0,2} (?P<time>{year})(?![\w-])",
            r"(?:\A|[.!?] )(?P<time>{year})(?= (?:wurden?|waren?|bin|ist|sind|habe|haben|hat|zog|zogen|ging|kam)\b)",
        ),
        "decade": (r"\bin den (?P<time>(?P<century>19|20)?(?P<decade>[1-9]0)er(?:n|-?jahren)?)\b",),
    },
    limit=(
        r"(?:(?P<since>seit)|(?P<start>ab)|(?P<after>nach)|(?P<before>vor)|(?P<until>bis)|(?P<by>spatestens)"
        r"|(?P<range>von|vom|zwischen)|(?P<joint>und))"
        r" (?:am |dem |zum |den |im |jahr |dem jahr )?"
    ),
    onward=r" an\b",
    joint=r" ?(?:und|bis|-|\u2013) ?(?:zum |dem )?",
    function_words=words(
        "der die das und ich ist nicht ein eine einen mit auf fur wir war hat habe haben zu den von im am sie er es dem"
        " werde wird sich als auch wurde seit vor bei nach mein meine unser hatte sind bin ins zum zur uns mir"
        " mich hier wir waren nur noch aber wie was gehe"
    ),
    cues=TenseCues(
        past=(
            r"\b(?:[Ww]ar(?:en|st|t)?|[Hh]atte(?:n|st)?|[Ww]urden?|[Gg]ing(?:en)?|[Kk]am(?:en)?|[Ss]ah(?:en)?"
            r"|fuhr(?:en)?"
            r"|gab(?:en)?|fand(?:en)?|traf(?:en)?|sprach(?:en)?|nahm(?:en)?|bekam(?:en)?|begann(?:en)?|blieb(?:en)?"
            r"|flog(?:en)?|aß(?:en)?|las(?:en)?|schrieb(?:en)?|rief(?:en)?|zog(?:en)?|starb(?:en)?|brachten?|dachten?"
            r"|(?:kauf|mach|sag|arbeite|leb|wohn|besuch|lern|spiel|heirate|feier|reis|starte|wechsel|kündig|eröffne|"
            rf"konn|muss|regne|hör|kann|verkauf)ten?)\b|(?:{_HAVE})(?=[^!?;]{{0,100}}?(?:{_PARTICIPLE}))"
        ),
        ahead=(
            r"\b(?:[Ww]erden?|[Ww]irst|[Ww]ird|[Ww]erdet|[Mm]uss|[Mm]üssen|[Ss]oll(?:en)?|[Mm]öchten?|[Pp]lanen?|plant"
            r"|fällig|[Tt]ermin|[Tt]reffen wir|beginnt|startet|endet|öffnet|eröffnet|findet|[Ll]asst? uns|will|wollen"
            r"|[Bb]is)\b|\b[Ii]ch [a-zäöüß]+(?<!t)e\b|\b[A-Za-zäöüß]+(?<!t)e ich\b"
        ),
        either=rf"\b(?:würden?|könnten?|sollten?|wollten?)\b|(?:{_HAVE})(?=[^!?;]{{0,100}}?\b{_OPEN})",
    ),
    recurring=(
        r"\b(?:jede[nrsm]?|alle|(?:mehr|weniger) als|uber|mindestens)(?: zweiten?)? $"
        r"|\b(?P<plain>an einem|ein|eines|der|schwarze[rn]|erste[rn]?|letzte[rn]? (?:woche|tag)) $"
    ),
    habit=r"\b(?:immer|jede[nrsm]?|meist(?:ens)?|normalerweise|oft|manchmal|gewöhnlich|regelmäßig|täglich|jährlich)\b",
    yearly=r"(?:geburtstag|jahrestag|hochzeitstag|weihnachten)",
    unreal=(
        r"\b(?:wenn|falls|würden?|wäre[nt]?|hätten?|roman|statt (?:am|im|de[rsmn]|dessen)|anstatt|stell dir vor"
        r"|spielt im)\b"
    ),
    nouns_capital=True,
    moving=r"(?:verschoben|verlegt|geändert|gewechselt|verschieben|verlegen|ändern|wechseln)",
)  # fmt: skip
