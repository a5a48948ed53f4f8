"""Spanish."""

from __future__ import annotations

from recallite.text.dates.language import Language, TenseCues, numbered, words
from recallite.text.dates.periods import COMING, LAST, NEAREST, THIS

_MONTHS = "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre"
_WEEKDAYS = "lunes martes miercoles jueves viernes sabado domingo"

SPANISH = Language(
    code="es",
    months=numbered(_MONTHS, 1),
    weekdays=numbered(_WEEKDAYS, 0),
    seasons={"primavera": 3, "verano": 6, "otono": 9, "invierno": 12},
    units={
        "dia": "day", "dias": "day", "noche": "day", "noches": "day", "fin de semana": "weekend",
        "fines de semana": "weekend", "semana": "week", "semanas": "week", "quincena": "fortnight", "mes": "month",
        "meses": "month", "trimestre": "quarter", "ano": "year", "anos": "year", "decadas": "decade",
    },
    parts=("noche", "manana", "tarde", "madrugada"),
    which={
        "pasado": LAST, "pasada": LAST, "pasados": LAST, "pasadas": LAST, "ultimo": LAST, "ultima": LAST,
        "ultimos": LAST, "ultimas": LAST, "este": THIS, "esta": THIS, "proximo": NEAREST, "proxima": NEAREST,
        "proximos": NEAREST, "proximas": NEAREST, "que viene": COMING, "que entra": COMING,
    },
    named={
        "anteayer": -2, "antes de ayer": -2, "antier": -2, "anteanoche": -2, "anoche": -1, "ayer": -1, "hoy": 0,
        "manana": 1, "pasado manana": 2,
    },
    numbers={
        "un": 1, "una": 1, "uno": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8,
        "nueve": 9, "diez": 10, "once": 11, "doce": 12, "un par de": 2, "unos": 3, "unas": 3, "pocos": 3, "pocas": 3,
    },
    vague=("un par de", "unos", "unas", "pocos", "pocas"),
    edges={
        "principios de": 0, "comienzos de": 0, "inicios de": 0, "mediados de": 1, "finales de": 2, "fines de": 2,
    },
    patterns={
        "days": (
            r"\b(?:del |entre el )?(?P<first>\d\d?) ?(?:-|\u2013|al|y)(?: el)? ?{day} de {month}\b"
            r"(?:(?: de| del|,)? {year}\b)?",
        ),
        "date": (
            r"\b(?P<time>{weekday},? {day} de {month}\b(?:(?: de| del|,)? {year}\b)?)",
            r"\b(?P<time>{day} de {month}\b(?:(?: de| del|,)? {year}\b)?)",
        ),
        "edge": (
            r"\b(?P<time>{edge} {month}\b(?:(?: de| del)? {year}\b)?)(?! ?\d)",
            r"\b(?P<time>{edge} {year})(?![\w-])",
        ),
        "month_of_year": (
            r"\b(?P<time>{month} del ano {which})\b", r"\b(?P<time>{season} del ano {which})\b",
            r"\b(?P<time>{month} de (?P<which>este) ano)\b",
        ),
        "month_year": (r"\b(?P<time>{month}(?: de| del)? {year}\b)",),
        "quarter": (r"\b[tq](?P<quarter>[1-4]) (?:de )?{year}\b",),
        "season_year": (r"\b(?P<time>{season}(?: de| del)? {year}\b)",),
        "weekday_of_week": (
            r"\b(?P<time>{weekday} de (?:la |esta )?semana {which})\b",
            r"\b(?P<time>{weekday} de la (?P<which>proxima) semana)\b",
        ),
        "ago": (
            r"(?<!desde )\b(?P<time>hace (?:unos "
            r"|unas )?{number} {unit})\b(?! que\b)", r"\b(?P<time>{number} {unit} atras)\b",
        ),
        "ahead": (r"\b(?P<time>(?:dentro de|en) {number} {unit})\b",),
        "within": (r"\b(?P<time>{which} {number} {unit}\b)",),
        "named": (
            r"(?<!la )(?<!de )(?<!por la )(?<!buena )(?<!las )(?<!esta )(?<!una )(?<!cada )\b(?P<time>{named})\b",
            r"\b(?:de|hasta|para) (?P<time>(?P<named>anteayer|ayer|hoy))\b",
        ),
        "part": (r"\b(?P<time>(?P<which>esta) {part})\b",),
        "near": (
            r"\b(?P<time>(?P<which>este|esta|proximo|proxima|ultimo|ultima) {what})\b"
            r"(?! (?:de|del|en que|que)\b)",
            r"\b(?P<time>{what} {which})\b",
        ),
        "weekday": (r"\b(?:el|este|hasta el|desde el|para el) (?P<time>{weekday})\b",),
        "weekend": (r"\b(?P<time>el fin de semana)\b(?! (?:de|del|que|pasado|proximo))",),
        "month": (r"\b(?:en|desde|hasta|mes de|entre|y|de|a)(?: el mes de)? (?P<time>{month})\b",),
        "season": (r"\b(?:en|desde|durante)(?: el| la)? (?P<time>{season})\b",),
        "year": (r"\b(?:en|desde|hasta|entre|y|de|a|ano)(?: el| el ano)? (?P<time>{year})(?![\w-])",),
        "decade": (r"\ben los (?:anos )?(?P<time>(?P<century>19|20)?(?P<decade>[1-9]0))\b(?! \w)",),
    },
    limit=(
        r"(?:(?P<since>desde)|(?P<start>a partir de|a partir del)|(?P<after>despues de|despues del|tras)"
        r"|(?P<before>antes de|antes del)|(?P<until>hasta)|(?P<by>para)|(?P<range>del?|entre)|(?P<joint>y|al?))"
        r" (?:el |la |las )?(?:ano |mes de )?"
    ),
    onward=r" en adelante\b",
    joint=r" ?(?:y|al?|hasta|-|\u2013) ?(?:el |la )?",
    function_words=words(
        "a el la los las un una y es en de del que no se por con para mi me lo le su sus al yo nos somos fue era"
        " soy esta"
        " estoy estaba muy pero como mas ha he hemos han desde hasta tengo hace fui fuimos voy va vamos ayer hoy anoche"
    ),
    cues=TenseCues(
        past=(
            r"\b\w{2,}(?:ó|é|aste|iste|ieron|aron|imos|ían?|íamos|aba|aban|ábamos)\b(?<!qué)(?<!está)(?<!estaré)(?<!ré)"
            r"|\b(?:fui|fue|fuimos|fueron|hice|hizo|hicimos|tuve|tuvo|tuvimos|estuve|estuvo|estuvimos|vine|vino"
            r"|vi|vio|vimos"
            r"|di|dio|dimos|puse|dije|dijo|era|eran|éramos|había)\b"
            r"|\b(?:[Hh]e|[Hh]as|[Hh]a|[Hh]emos|[Hh]an) \w+(?:ado|ido|to|cho)\b"
        ),
        ahead=(
            r"\b(?:voy|vas|va|vamos|vais|van) a(?: \w+)? \w+(?:ar|er|ir)(?:me|se|nos|lo|la)?\b|\b\w{2,}(?:ré|rás"
            r"|rá|remos|rán)\b"
            r"|\b(?:debo|debemos|tengo que|tenemos que|hay que|tiene que|pienso|planeo|cita|vence|plazo|empieza|empiezo"
            r"|comienza|termina|sale|llega|salimos|salgo)\b"
        ),
        either=(
            r"\b(?:decid\w+|qued\w+ en|reserv\w+|prometi\w*|prometí|acord\w+|dijo que|cerrad[oa]|abiert[oa])\b"
            r"|\b\w+ría(?:mos|n)?\b"
        ),
    ),
    recurring=(
        r"\b(?:cada|todos los|todas las|(?:mas|menos) de|al menos)(?: dos)? $|\b(?P<plain>un|una|algun|aquel|cierto) $"
    ),
    habit=(
        r"\b(?:cada|todos los|todas las|siempre|a menudo|normalmente|suelo|suele|solemos|a veces|una vez (?:al"
        r"|por))\b"
    ),
    yearly=r"(?:cumpleaños|aniversario|navidad)",
    unreal=r"(?:\bsi\b|\bojalá\b|\bnovela\b|en vez de|en lugar de|\bimagina|ambientada)",
    moving=r"(?:mov|cambi|pospus|aplaz|posp|traslad|retras|adelant)",
)  # fmt: skip
