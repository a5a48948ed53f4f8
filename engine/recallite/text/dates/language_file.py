"""Languages as their TOML files describe them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from recallite.text.dates.language import Context, Language, filled
from recallite.text.dates.periods import RELATIVE
from recallite.text.dates.tense import Cue, PatternCues, VerbCues
from recallite.text.lazy_patterns import lazily

_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_EDGES = {"early": 0, "mid": 1, "late": 2}
_COMMA = re.compile(r",\s+")


def read_language(name: str) -> Language:
    """Return the language of a file of this package: "english"."""
    import tomllib

    table = tomllib.loads((files(__package__) / f"{name}.toml").read_text("utf-8"))
    fragments = {name: _pattern(fragment, {}) for name, fragment in table.get("fragments", {}).items()}

    def patterns(key: str) -> dict[str, str]:
        return {name: _pattern(pattern, fragments) for name, pattern in table[key].items()}

    def forms(key: str) -> dict[str, tuple[str, ...]]:
        return {
            kind: tuple(_pattern(pattern, fragments) for pattern in ([form] if isinstance(form, str) else form))
            for kind, form in table.get(key, {}).items()
        }

    cues: Callable[[str], list[Cue]]
    if "verbs" in table:
        cues = VerbCues(**{key: frozenset(words.split()) for key, words in table["verbs"].items()})
    else:
        cues = PatternCues(**patterns("tense"))
    return Language(
        code=table["code"],
        months=_in_order(table["months"], 1),
        weekdays=_in_order(table["weekdays"], 0),
        seasons=_values(table["seasons"], _SEASONS.__getitem__),
        units=_values(table["units"], str),
        parts_of_day=_listed(table["parts_of_day"]),
        relative=_values(table["relative"], RELATIVE.__getitem__),
        named=_values(table["named"], int),
        weeks=_values(table.get("weeks", {}), int),
        numbers=_values(table["numbers"], int),
        vague_numbers=_listed(table["vague_numbers"]),
        edges=_values(table["edges"], _EDGES.__getitem__),
        stated_forms=forms("forms"),
        question_forms=forms("question_forms"),
        literals=table.get("literals", {}),
        context=Context(**{name: lazily(pattern) for name, pattern in patterns("context").items()}),
        function_words=frozenset(table["function_words"].split()),
        cues=cues,
        day_first=table.get("day_first", True),
        capital_nouns=table.get("capital_nouns", False),
    )


def _pattern(text: str, fragments: Mapping[str, str]) -> str:
    """Return a pattern of one line, or of several that are indented, with its fragments."""
    return filled("".join(map(str.lstrip, text.split("\n"))) if "\n" in text else text, fragments)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(_COMMA.split(text.strip()))


def _values(table: Mapping[str, str], value_of: Callable[[str], Any]) -> dict[str, Any]:
    """Return the value of each word of a table that lists the words of each value."""
    return {word: value_of(value) for value, words in table.items() for word in _listed(words)}


def _in_order(names: str, first: int) -> dict[str, int]:
    """Return the numbers of names: "january/jan february/feb" from 1."""
    return {name: number for number, synonyms in enumerate(names.split(), first) for name in synonyms.split("/")}
