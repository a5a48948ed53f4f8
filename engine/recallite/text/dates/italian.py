"""Italian."""

from __future__ import annotations

from recallite.text.dates.language import Language, TenseCues, numbered, words
from recallite.text.dates.periods import COMING, LAST, NEAREST, THIS

_MONTHS = "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
_WEEKDAYS = "lunedi martedi mercoledi giovedi venerdi sabato domenica"
_HAVE = r"\b(?:[Hh]o|[Hh]ai|[Hh]a|[Aa]bbiamo|[Aa]vete|[Hh]anno|[Ss]ono|[Ss]ei|[ÈèEe]'?|[Ss]iamo|[Ss]iete)"

ITALIAN = Language(
    code="it",
    months=numbered(_MONTHS, 1),
    weekdays=numbered(_WEEKDAYS, 0),
    seasons={"primavera": 3, "estate": 6, "autunno": 9, "inverno": 12},
    units={
        "giorno": "day", "giorni": "day", "notte": "day", "notti": "day", "fine settimana": "weekend",
        "weekend": "weekend", "week-end": "weekend", "settimana": "week", "settimane": "week", "mese": "month",
        "mesi": "month", "trimestre": "quarter", "anno": "year", "anni": "year", "decenni": "decade",
    },
    parts=("notte", "sera", "mattina", "mattino", "pomeriggio"),
    which={
        "scorso": LAST, "scorsa": LAST, "scorsi": LAST, "scorse": LAST, "passato": LAST, "passata": LAST,
        "ultimo": LAST, "ultima": LAST, "ultimi": LAST, "ultime": LAST, "questo": THIS, "questa": THIS, "quest'": THIS,
        "prossimo": NEAREST, "prossima": NEAREST, "prossimi": NEAREST, "prossime": NEAREST, "che viene": COMING,
    },
    named={
        "l'altro ieri": -2, "altroieri": -2, "l'altroieri": -2, "ieri": -1, "ieri sera": -1, "oggi": 0, "stasera": 0,
        "stamattina": 0, "stanotte": 0, "domani": 1, "dopodomani": 2,
    },
    numbers={
        "un": 1, "una": 1, "uno": 1, "due": 2, "tre": 3, "quattro": 4, "cinque": 5, "sei": 6, "sette": 7, "otto": 8,
        "nove": 9, "dieci": 10, "undici": 11, "dodici": 12, "un paio di": 2, "qualche": 3, "pochi": 3, "poche": 3,
    },
    vague=("un paio di", "qualche", "pochi", "poche"),
    edges={
        "inizio": 0, "l'inizio di": 0, "inizi di": 0, "primi di": 0, "meta": 1, "fine": 2, "la fine di": 2,
    },
    patterns={
        "days": (
            r"\b(?:dal |tra il |fra il )?(?P<first>\d\d?) ?(?:-|\u2013|al"
            r"|e il) ?{day} {month}\b(?: (?:del )?{year}\b)?",
        ),
        "date": (
            r"\b(?P<time>{weekday},? {day} {month}\b(?: (?:del )?{year}\b)?)",
            r"\b(?P<time>{day} {month}\b(?: (?:del )?{year}\b)?)",
        ),
        "edge": (
            r"\b(?P<time>{edge} {month}\b(?: (?:del )?{year}\b)?)(?! ?\d)", r"\b(?P<time>{edge} {year})(?![\w-])",
        ),
        "month_of_year": (
            r"\b(?P<time>{month} (?:dell'anno|dello) {which}(?: anno)?)\b",
            r"\b(?P<time>{season} dell'anno {which})\b",
        ),
        "month_year": (r"\b(?P<time>{month} (?:del )?{year}\b)",),
        "quarter": (r"\b[tq](?P<quarter>[1-4]) (?:del )?{year}\b",),
        "season_year": (r"\b(?P<time>{season} (?:del )?{year}\b)",),
        "weekday_of_week": (
            r"\b(?P<time>{weekday} della (?:settimana )?(?P<which>scorsa|prossima)(?: settimana)?)\b",
        ),
        "ago": (r"\b(?P<time>{number} {unit} fa)\b",),
        "ahead": (r"\b(?P<time>(?:tra|fra) {number} {unit})\b",),
        "within": (r"\b(?P<time>{which} {number} {unit}\b)",),
        "named": (r"\b(?P<time>{named})\b",),
        "part": (r"\b(?P<time>(?P<which>questa|questo|scorsa) {part})\b",),
        "near": (
            r"\b(?P<time>(?P<which>questo|questa|scorso|scorsa|ultimo|ultima|prossimo|prossima) {what})\b(?! d[ei])",
            r"\b(?P<time>(?P<which>quest'){what})\b(?! d[ei])",
            r"\b(?P<time>{what} {which})\b",
        ),
        "weekday": (r"(?<!il )(?<!la )(?<!ogni )(?<!di )(?<!un )(?<!una )\b(?P<time>{weekday})\b",),
        "weekend": (r"\b(?:nel|durante il) (?P<time>weekend|week-end|fine settimana)\b(?! d[ei])",),
        "month": (
            r"\b(?:a|ad|in|nel|da|dal|fino a|mese di|tra|fra|e|di)(?: mese di)? (?P<time>{month})\b",
        ),
        "season": (r"\b(?:in|d'|nella|questa|durante l'|dall'|dalla)\b ?(?P<time>{season})\b",),
        "year": (r"\b(?:nel|dal|fino al|tra il|fra il|e il|il|al|anno) (?P<time>{year})(?![\w-])",),
        "decade": (r"\bnegli anni (?P<time>'?(?P<century>19|20)?(?P<decade>[1-9]0))\b",),
    },
    limit=(
        r"(?:(?P<start>a partire d[ae]l?)|(?P<after>dopo)|(?P<before>prima d[ie]l?)|(?P<until>fino (?:ad?|al|alla))"
        r"|(?P<by>entro)|(?P<range>tra|fra)|(?P<since>dal?)|(?P<joint>ed?))"
        r" ?(?:il |la |l')?(?:mese di )?"
    ),
    onward=r" in poi\b",
    joint=r" ?(?:ed?|al?|fino al?|-|\u2013) ?(?:il |la )?",
    function_words=words(
        "a il lo la i gli le un una e in di del della dei che non si per con mio mia suo sua al alla nel nella"
        " sono era ho ha"
        " abbiamo hanno siamo molto ma come piu io lui lei noi da dal mi ci sto stato stata fino"
    ),
    cues=TenseCues(
        past=(
            r"\b(?:ero|era|eravamo|erano|avevo|aveva|avevano|\w{2,}(?:avo|ava|avano|evano|ivano|arono|irono"
            r"|erono)|fu|furono|nacque)\b"
            rf"|{_HAVE}(?= (?:(?:già|anche|sempre|appena|tutti|poi|finalmente|\w+mente) )?"
            r"\w+(?:at[oaie]|ut[oaie]|it[oaie]|st[oaie]|tt[oaie]|s[oaie]|rt[oaie]|lt[oaie]"
            r"|nt[oaie]))(?! (?:previst|chius|apert|prenotat))"
        ),
        ahead=(
            r"\b\w{2,}(?:rò|rà|remo|ranno|rai|rete)\b|\b(?:devo|dobbiamo|deve|devono|ho intenzione|pensiamo"
            r"|scadenza|appuntamento"
            r"|scade|inizia|comincia|finisce|parte|partiamo|parto|arriva|vado a|andiamo a)\b"
        ),
        either=(
            r"\b(?:decis\w+|prenotat\w+|promess\w+|previst[oa]|chius[oa]|apert[oa]|detto che)\b|\b\w+re(?:i|bbe"
            r"|mmo|bbero)\b(?<!remo)"
            rf"|{_HAVE}(?= (?:previst|chius|apert|prenotat|decis|promess)\w+)"
        ),
    ),
    recurring=(
        r"\b(?:ogni|tutti i|tutte le|(?:piu|meno) di|almeno)(?: due)? $|\b(?P<plain>un|una|qualche|certo|quel) $"
    ),
    habit=r"\b(?:ogni|tutti i|tutte le|sempre|spesso|di solito|a volte|normalmente|una volta (?:al|alla))\b",
    yearly=r"(?:compleanno|anniversario|natale)",
    unreal=r"(?:\bse (?!n)|\bmagari\b|\bromanzo\b|invece d|al posto d|\bimmagina|ambientat)",
    moving=r"(?:spost|cambi|rinvi|posticip|anticip)",
)  # fmt: skip
