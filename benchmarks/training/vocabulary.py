"""python -m benchmarks.training.vocabulary DIR: how common words are, for the IDF of small stores.

Counts in how many turns of conversations and paragraphs of notes each index term occurs, in sources that are pinned in
`sources.json` and of which no part is asked for in a test: FriendsQA (Apache-2.0), Molweni (Apache-2.0), QMSum (MIT),
Synthetic-Persona-Chat (CC BY 4.0) and EIPs (CC0). Each source counts alike, whatever its size. Writes
`recallite/text/vocabulary.txt`, of which each line is a level and the terms whose share of texts is 2^(-level / 4).
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import recallite.text.words as shipped
from benchmarks.training import data
from recallite.text.words import tokenize

# Terms of fewer texts, or of one source alone, are names, slips and jargon.
_LEAST_TEXTS, _LEAST_SOURCES = 3, 2
_PERSONAS = "google-research-datasets/Synthetic-Persona-Chat"
_NOTES = "ethereum/EIPs"
_SPEAKER = re.compile(r"^User \d: ")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def main() -> None:
    """Write the vocabulary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repositories", type=Path, metavar="DIR", help="clones of the pinned repositories")
    parser.add_argument("--out", type=Path, default=shipped.PATH)
    options = parser.parse_args()
    written = render(shares(options.repositories))
    options.out.write_text(written, encoding="utf-8")
    print(f"{options.out}: {len(written):,} characters")


def shares(repositories: Path) -> dict[str, float]:
    """The share of the texts of an average source that contain each term."""
    total: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    sources_with: Counter[str] = Counter()
    sources = [_turns(repositories, name) for name in ("friendsqa", "molweni", "qmsum")]
    sources += [_persona_turns(repositories), _paragraphs(repositories)]
    for texts in sources:
        counts: Counter[str] = Counter()
        number = 0
        for text in texts:
            terms = set(tokenize(text))
            counts.update(terms)
            number += bool(terms)
        seen.update(counts)
        sources_with.update(counts.keys())
        total.update({term: count / number / len(sources) for term, count in counts.items()})
    return {
        term: share
        for term, share in total.items()
        if seen[term] >= _LEAST_TEXTS and sources_with[term] >= _LEAST_SOURCES and not any(map(str.isdigit, term))
    }


def render(term_shares: dict[str, float]) -> str:
    """The file: a line of terms for each level, both ascending."""
    levels: dict[int, list[str]] = {}
    for term, share in term_shares.items():
        levels.setdefault(round(-4 * math.log2(share)), []).append(term)
    return "".join(f"{level} {' '.join(sorted(levels[level]))}\n" for level in sorted(levels))


def _turns(repositories: Path, name: str) -> Iterator[str]:
    for store in data.stores(repositories, "vectors", (name,)):
        for turn in store.turns:
            yield turn["text"]


def _persona_turns(repositories: Path) -> Iterator[str]:
    for path in data.paths(_PERSONAS):
        for row in csv.DictReader(io.StringIO(data.read(repositories, _PERSONAS, path))):
            for line in row["Best Generated Conversation"].splitlines():
                yield _SPEAKER.sub("", line)


def _paragraphs(repositories: Path) -> Iterator[str]:
    for path in data.paths(_NOTES):
        body = _FRONT_MATTER.sub("", data.read(repositories, _NOTES, path))
        yield from body.split("\n\n")


if __name__ == "__main__":
    main()
