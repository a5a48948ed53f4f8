"""python -m benchmarks.training.vocabulary DIR: how common words are, for the IDF of small stores.

Counts in how many turns of conversations and paragraphs of notes each index term occurs, in sources that are pinned in
`sources.json` and of which no part is asked for in a test: FriendsQA (Apache-2.0), Molweni (Apache-2.0), QMSum (MIT),
Synthetic-Persona-Chat (CC BY 4.0) and EIPs (CC0). Each source counts alike, whatever its size. Writes
`recallite/text/vocabulary.txt`, of which each line is a level and the terms whose share of texts is 2^(-level / 4).

`--foreign` does the same for what is not English and writes `foreign_vocabulary.txt`: of each language the frequent
terms in treebanks, dialogues, the patterns of `standing/` and the cohort's sentences. A term of several languages has
the share of the one that has it most.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import recallite.text.words as shipped
from benchmarks.training import data
from benchmarks.training.standing import FOLDER, made_of, texts_of
from recallite.embedding.cohort import FILE as COHORT
from recallite.text.words import tokenize

# Terms of fewer texts, or of one source alone, are names, slips and jargon.
_LEAST_TEXTS, _LEAST_SOURCES = 3, 2
_PERSONAS = "google-research-datasets/Synthetic-Persona-Chat"
_NOTES = "ethereum/EIPs"
# Of what is not English: fewer texts say little, rarer terms are as rare as unknown ones.
_LEAST_SHARE, _FEW_TEXTS, _LEAST_FOREIGN_TEXTS = 2.0**-8, 100, 2
_CODE_OF_PREFIX = {"jp": "ja"}
_SPEAKER = re.compile(r"^User \d: ")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def main() -> None:
    """Write the vocabulary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repositories", type=Path, metavar="DIR", help="clones of the pinned repositories")
    parser.add_argument("--foreign", action="store_true", help="count what is not English")
    options = parser.parse_args()
    written = render((foreign_shares if options.foreign else shares)(options.repositories))
    path = shipped.FOREIGN_PATH if options.foreign else shipped.PATH
    path.write_text(written, encoding="utf-8")
    print(f"{path}: {len(written):,} characters")


def foreign_shares(repositories: Path) -> dict[str, float]:
    """The share of the texts of an average source that contain each frequent term, in the language that has it most."""
    by_language: dict[str, list[list[str]]] = {}
    for repository, pin in data.used_by("foreign").items():
        for path in pin["files"] if "foreign" in pin.get("used_by", ()) else ():
            prefix = Path(path).name[:2].lower()
            texts = [*texts_of(path, data.read(repositories, repository, path))]
            by_language.setdefault(_CODE_OF_PREFIX.get(prefix, prefix), []).append(texts)
    for path in FOLDER.glob("*.txt"):
        by_pattern = {sentence.pattern: sentence.text for sentence in made_of(path)}
        by_language.setdefault(path.stem, []).append([*by_pattern.values()])
    cohort: dict[str, list[str]] = {}
    for line in COHORT.read_text("utf-8").splitlines():
        language, *texts = line.split("\t")
        cohort.setdefault(language, []).append(" ".join(texts))
    most: dict[str, float] = {}
    for language in sorted(cohort.keys() - {"en"}):
        sources = [*by_language.get(language, ()), cohort[language]]
        weights = [len(texts) / (len(texts) + _FEW_TEXTS) for texts in sources]
        counted = [Counter(chain.from_iterable(set(tokenize(text)) for text in texts)) for texts in sources]
        for term in set().union(*counted):
            share = sum(
                w * counts[term] / len(texts) for w, counts, texts in zip(weights, counted, sources, strict=True)
            )
            seen = sum(counts[term] for counts in counted)
            share /= sum(weights)
            if seen >= _LEAST_FOREIGN_TEXTS and share >= _LEAST_SHARE and not any(map(str.isdigit, term)):
                most[term] = max(most.get(term, 0.0), share)
    return most


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
