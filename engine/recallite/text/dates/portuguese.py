"""Portuguese."""

from __future__ import annotations

from recallite.text.dates.language import Language, TenseCues, numbered, words
from recallite.text.dates.periods import COMING, LAST, NEAREST, THIS

_MONTHS = "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro"
_WEEKDAYS = (
    "segunda-feira/segunda terca-feira/terca quarta-feira/quarta quinta-feira/quinta sexta-feira/sexta sabado domingo"
)

PORTUGUESE = Language(
    code="pt",
    months=numbered(_MONTHS, 1),
    weekdays=numbered(_WEEKDAYS, 0),
    seasons={"primavera": 3, "verao": 6, "outono": 9, "inverno": 12},
    units={
        "dia": "day", "dias": "day", "noite": "day", "noites": "day", "fim de semana": "weekend",
        "fim-de-semana": "weekend", "fins de semana": "weekend", "semana": "week", "semanas": "week",
        "quinzena": "fortnight", "mes": "month", "meses": "month", "trimestre": "quarter", "ano": "year",
        "anos": "year", "decadas": "decade",
    },
    parts=("noite", "manha", "tarde", "madrugada"),
    which={
        "passado": LAST, "passada": LAST, "passados": LAST, "passadas": LAST, "ultimo": LAST, "ultima": LAST,
        "ultimos": LAST, "ultimas": LAST, "este": THIS, "esta": THIS, "neste": THIS, "nesta": THIS, "deste": THIS,
        "desta": THIS, "proximo": NEAREST, "proxima": NEAREST, "proximos": NEAREST, "proximas": NEAREST,
        "que vem": COMING,
    },
    named={
        "anteontem": -2, "ontem": -1, "hoje": 0, "amanha": 1, "depois de amanha": 2,
    },
    numbers={
        "um": 1, "uma": 1, "dois": 2, "duas": 2, "tres": 3, "quatro": 4, "cinco": 5, "seis": 6, "sete": 7, "oito": 8,
        "nove": 9, "dez": 10, "onze": 11, "doze": 12, "alguns": 3, "algumas": 3, "poucos": 3, "poucas": 3,
    },
    vague=("alguns", "algumas", "poucos", "poucas"),
    edges={
        "inicio de": 0, "comeco de": 0, "principio de": 0, "meados de": 1, "final de": 2, "fim de": 2, "fins de": 2,
    },
    patterns={
        "days": (
            r"\b(?:de |entre )?(?P<first>\d\d?) ?(?:-|\u2013|a|e) ?{day} de {month}\b(?:(?: de|,)? {year}\b)?",
        ),
        "date": (
            r"\b(?P<time>{weekday},? {day} de {month}\b(?:(?: de|,)? {year}\b)?)",
            r"\b(?P<time>{day} de {month}\b(?:(?: de|,)? {year}\b)?)",
        ),
        "edge": (
            r"\b(?P<time>{edge} {month}\b(?:(?: de)? {year}\b)?)(?! ?\d)", r"\b(?P<time>{edge} {year})(?![\w-])",
        ),
        "month_of_year": (
            r"\b(?P<time>{month} do ano {which})\b", r"\b(?P<time>{season} do ano {which})\b",
            r"\b(?P<time>{month} (?P<which>deste) ano)\b",
        ),
        "month_year": (r"\b(?P<time>{month}(?: de)? {year}\b)",),
        "quarter": (r"\b[tq](?P<quarter>[1-4]) (?:de )?{year}\b",),
        "season_year": (r"\b(?P<time>{season}(?: de)? {year}\b)",),
        "weekday_of_week": (r"\b(?P<time>{weekday} da semana {which})\b",),
        "ago": (
            r"(?<!desde )\b(?P<time>ha {number} {unit}(?: atras)?)\b(?! que\b)", r"\b(?P<time>{number} {unit} atras)\b",
        ),
        "ahead": (r"\b(?P<time>(?:daqui a|dentro de|em) {number} {unit})\b",),
        "within": (r"\b(?P<time>{which} {number} {unit}\b)", r"\b(?P<time>{number} {which} {unit}\b)"),
        "named": (r"\b(?P<time>{named})\b",),
        "part": (r"\b(?P<time>(?P<which>esta|nesta) {part})\b",),
        "near": (
            r"\b(?P<time>(?P<which>este|esta|neste|nesta|deste|desta|proximo|proxima|ultimo|ultima) {what})\b"
            r"(?! (?:de|do|da|que)\b)",
            r"\b(?P<time>{what} {which})\b",
        ),
        "weekday": (r"\b(?:na|no|ate|ate a|ate o|desde|para|esta|este) (?P<time>{weekday})\b",),
        "weekend": (r"\b(?:no|neste) (?P<time>fim[ -]de[ -]semana)\b(?! (?:de|do|da|passado|que))",),
        "month": (r"\b(?:em|desde|ate|mes de|entre|e|de|a)(?: o mes de)? (?P<time>{month})\b",),
        "season": (r"\b(?:na|no|desde o|durante o) (?P<time>{season})\b",),
        "year": (r"\b(?:em|desde|ate|entre|e|de|a|ano|ano de) (?P<time>{year})(?![\w-])",),
        "decade": (r"\bnos (?:anos )(?P<time>(?P<century>19|20)?(?P<decade>[1-9]0))\b(?! \w)",),
    },
    limit=(
        r"(?:(?P<since>desde)|(?P<start>a partir d[eoa])|(?P<after>depois d[eoa]|apos)|(?P<before>antes d[eoa])"
        r"|(?P<until>ate)|(?P<range>d[eoa]|entre)|(?P<joint>e|a)) (?:o |a )?(?:ano de |mes de )?"
    ),
    onward=r" em diante\b",
    joint=r" ?(?:e|a|ate|-|\u2013) ?(?:o |a )?",
    function_words=words(
        "o a os as um uma e em de do da dos das que nao se por com para meu minha seu sua no na nos foi era sou estou"
        " estava muito mas como mais ao ha temos tenho fui eu ele ela voce fomos desde ate nos vamos ano ontem"
        " hoje amanha"
    ),
    cues=TenseCues(
        past=(
            r"\b\w{2,}(?:ou|ei|eu|iu|aram|eram|iram|amos|emos|imos|ava|avam|ávamos|ia"
            r"|iam)\b(?<!\bestou)(?<!\bmeu)(?<!\bseu)"
            r"(?<!rei)(?<!remos)(?<!\bvamos)(?<!\btemos)(?<!ria)(?<!riam)(?<!\bdia)(?<!\bsou)(?<!sei)(?<!\bestamos)"
            r"|\b(?:fui|foi|fomos|foram|fiz|fez|fizemos|tive|teve|tivemos|estive|esteve|estivemos|vim|veio|vi|viu|vimos"
            r"|pus|disse|era|eram|tinha|tinham)\b"
        ),
        ahead=(
            r"\b(?:vou|vais|vai|vamos|vão) (?:me |se |nos )?\w+(?:ar|er|ir|or)\b|\b\w{2,}(?:rei|rás|rá|remos|rão)\b"
            r"|\b(?:devo|devemos|tenho que|tenho de|temos que|temos de|preciso|pretendo|planejo|prazo|começa"
            r"|começo|termina"
            r"|parte|chega|consulta)\b"
        ),
        either=(
            r"\b(?:decid\w+|combin\w+|reserv\w+|promet\w+|marc(?:ou|amos|ei)|disse que|fechad[oa]|abert[oa])\b"
            r"|\b\w+ria(?:m|mos)?\b"
        ),
    ),
    recurring=(
        r"\b(?:cada|todos os|todas as|toda|todo|(?:mais|menos) de|pelo menos)(?: duas)? $|\b(?P<plain>um|uma"
        r"|algum|certo|numa|num) $"
    ),
    habit=r"\b(?:cada|tod[oa]s? [oa]s|toda|sempre|normalmente|costumo|costuma|costumamos|às vezes|uma vez por)\b",
    yearly=r"(?:aniversário|natal)",
    unreal=r"(?:\bse (?:eu|ele|ela|nós|você|chov)|\boxalá\b|\bromance\b|em vez de|ao invés|\bimagin|ambientad)",
    moving=r"(?:mov|mud|adiad|adiou|remarc|transferid|antecip|trocad)",
)  # fmt: skip
