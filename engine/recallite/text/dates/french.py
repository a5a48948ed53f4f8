"""French."""

from __future__ import annotations

from recallite.text.dates.language import Language, TenseCues, numbered, words
from recallite.text.dates.periods import COMING, LAST, NEAREST, THIS

_MONTHS = "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre"
_WEEKDAYS = "lundi mardi mercredi jeudi vendredi samedi dimanche"

_AVOIR = r"\b(?:[Jj]'ai|[Aa]i|[Aa]s|[Aa]|[Aa]vons|[Aa]vez|[Oo]nt|[Ss]uis|[Ee]s|[Ee]st|[Ss]ommes|[Êê]tes|[Ss]ont)\b"
_PARTICIPLE = (
    r"[\w']*?(?:\w{2,}é(?:e|s|es)?|\w{2,}i(?:e|s|es|t|te)?|\w+u(?:e|s|es)?|fait|été|dit|mis|pris|appris|écrit|ouvert"
    r"|offert|mort|né)"
)

FRENCH = Language(
    code="fr",
    months=numbered(_MONTHS, 1),
    weekdays=numbered(_WEEKDAYS, 0),
    seasons={"printemps": 3, "ete": 6, "automne": 9, "hiver": 12},
    units={
        "jour": "day", "jours": "day", "nuit": "day", "week-end": "weekend", "weekend": "weekend",
        "week-ends": "weekend", "weekends": "weekend", "semaine": "week", "semaines": "week", "quinzaine": "fortnight",
        "mois": "month", "trimestre": "quarter", "an": "year", "ans": "year", "annee": "year", "annees": "year",
    },
    parts=("nuit", "soir", "matin", "apres-midi"),
    which={
        "dernier": LAST, "derniere": LAST, "derniers": LAST, "dernieres": LAST, "passe": LAST, "passee": LAST,
        "ce": THIS, "cet": THIS, "cette": THIS, "prochain": NEAREST, "prochaine": NEAREST, "prochains": NEAREST,
        "prochaines": NEAREST, "qui vient": COMING,
    },
    named={
        "avant-hier": -2, "hier": -1, "aujourd'hui": 0, "demain": 1, "apres-demain": 2,
    },
    numbers={
        "un": 1, "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "six": 6, "sept": 7, "huit": 8, "neuf": 9,
        "dix": 10, "onze": 11, "douze": 12, "quelques": 3,
    },
    vague=("quelques",),
    edges={"debut": 0, "mi": 1, "fin": 2, "au debut de": 0, "a la fin de": 2},
    patterns={
        "days": (
            r"\b(?:du |entre le )?(?P<first>\d\d?)(?:er)? ?(?:-|\u2013|au|et)(?: le)? ?{day} {month}\b(?: {year}\b)?",
        ),
        "date": (
            r"\b(?P<time>{weekday},? (?:le )?{day} {month}\b(?: {year}\b)?)",
            r"\b(?P<time>{day} {month}\b(?: {year}\b)?)",
        ),
        "edge": (r"\b(?P<time>{edge}[ -]{month}\b(?: {year}\b)?)(?! ?\d)", r"\b(?P<time>{edge}[ -]{year})(?![\w-])"),
        "month_of_year": (
            r"\b(?P<time>{month} (?:de )?l'(?:an|annee) {which})\b",
            r"\b(?P<time>{season} (?:de )?l'(?:an|annee) {which})\b",
        ),
        "month_year": (r"\b(?P<time>{month} {year}\b)",),
        "quarter": (r"\bt(?P<quarter>[1-4]) {year}\b",),
        "season_year": (r"\b(?P<time>{season} (?:de )?{year}\b)",),
        "weekday_of_week": (r"\b(?P<time>{weekday} de la semaine {which})\b",),
        "ago": (r"\b(?P<time>il y a {number} {unit}\b)", r"\b(?P<time>y a {number} {unit}\b)"),
        "ahead": (r"\b(?P<time>dans {number} {unit})\b",),
        "within": (
            r"\b(?P<time>{number} {which} {unit}\b)", r"\b(?P<time>{which} {number} {unit}\b)",
        ),
        "named": (r"\b(?P<time>{named})\b(?!-)",),
        "part": (r"\b(?P<time>(?P<which>ce|cet|cette) {part}\b)", r"\b(?P<time>{part} (?P<which>derniere?))\b"),
        "near": (
            r"\b(?P<time>(?P<which>ce|cet|cette) {what})\b(?! (?:de|du|des|d'))",
            r"\b(?P<time>{what} {which})\b",
            r"\b(?P<time>{what} (?:de )?(?P<which>cette) annee)\b",
        ),
        "weekday": (r"(?<!le )(?<!les )(?<!un )(?<!chaque )\b(?P<time>{weekday})\b",),
        "weekend": (
            r"\b(?:pendant |durant )?(?P<time>le week-?end)\b(?! (?:de|du|des|d'|dernier|prochain|je|on|nous))",),
        "month": (r"\b(?:en|depuis|jusqu'en|jusqu'a|mois de|entre|et|de|a|des)(?: le mois de)? (?P<time>{month})\b",),
        "season": (r"\b(?:en|au|cet|depuis l'|l')\b ?(?P<time>{season})\b",),
        "year": (r"\b(?:en|depuis|jusqu'en|entre|et|de|a|annee|des) (?P<time>{year})(?![\w-])",),
        "decade": (r"\bdans les (?P<time>annees (?P<century>19|20)?(?P<decade>[1-9]0))\b",),
    },
    # "An" is a year here and an article in English: without these it made a sixth of texts timely.
    literals={"ago": ("y a ",), "ahead": ("dans ",), "weekend": ("le week",)},
    limit=(
        r"(?:(?P<since>depuis)|(?P<start>a partir (?:de|du|d')|des)|(?P<after>apres)|(?P<before>avant)"
        r"|(?P<until>jusqu'(?:en|au|a))|(?P<by>d'ici(?: a)?)|(?P<range>de|du|entre)|(?P<joint>et|a|au))"
        r" ?(?:le |la |l'|en |au )?"
    ),
    joint=r" ?(?:et|a|au|jusqu'en|jusqu'au|-|\u2013) ?(?:le |en )?",
    function_words=words(
        "le la les un une des et est je j il elle nous vous ils elles on que qui ne pas pour dans avec sur en au"
        " aux du de"
        " mon ma mes son sa ses ai a avons ont suis sommes sont etait ete ce cette se plus depuis chez par mais"
    ),
    cues=TenseCues(
        past=(
            r"\b(?:étais|était|étions|étaient|avais|avait|avaient|avions|\w+(?:aient|èrent)|fut|naquit)\b"
            rf"|{_AVOIR}(?= (?:(?:pas|bien|déjà|tous?|beaucoup|enfin|\w+ment) )?{_PARTICIPLE}\b)"
            r"|\b(?:m'|t'|s')(?:est|étais?|suis)\b|\b(?:me|nous nous|se) (?:suis|sommes|sont)\b"
        ),
        ahead=(
            r"\b(?:vais|vas|va|allons|allez|vont) \w+(?:er|ir|re|oir)\b|\b\w+(?:rai|ras|rons|rez|ront)\b"
            r"|\b\w{2,}(?:era|ira|dra)\b"
            r"|\b(?:dois|doit|devons|doivent|prévois|compte|rendez-vous|échéance|faut|aura|sera|fera|verra)\b"
        ),
        either=(
            r"\b\w+rais\b|\b\w+rait\b"
            r"|\b(?:[Aa]i|[Jj]'ai|[Aa]|[Aa]vons|[Oo]nt|[Ee]st|[Ss]ont) (?:décidé|prévue?|réservé|promis|fermée?"
            r"|ouverte?|accepté|dit)s?\b"
        ),
    ),
    recurring=(
        r"\b(?:chaque|tous les|toutes les|(?:plus|moins) (?:de|d')|au moins)(?: deux)? ?$"
        r"|\b(?P<plain>un|une|certains?|ce fameux) $"
    ),
    habit=(
        r"\b(?:chaque|tous les|toutes les|toujours|souvent|d'habitude|parfois|normalement|généralement"
        r"|une fois par)\b"
    ),
    yearly=r"(?:anniversaire|noël)",
    unreal=r"(?:\bsi\b|\bs'il|\broman\b|au lieu|plutôt que|\bimagine|se déroule en|aimerais|voudrais|serait|pourrait)",
    moving=r"(?:déplac|report|décal|chang|repouss)",
)  # fmt: skip
