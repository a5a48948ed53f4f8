"""Whether a memory names a file, a command or an error: what a tool is about to touch, or has failed with.

A memory that is only about the same thing names nothing. What it may name in passing, a path within another or a longer
command than the one that is run, is not named either: nothing is shown rather than something useless.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from recallite.text.patterns import lazily, word_set
from recallite.text.standing import VERBS
from recallite.text.statements import lexicon as lx
from recallite.text.statements.instructions import instructions_of
from recallite.text.statements.statement_words import Word, read_words
from recallite.text.words import STOP_WORDS, stem_of

_MOST_COMMANDS, _MOST_COMMAND_CHARS, _MOST_ERROR_CHARS = 8, 4_000, 4_000
_MOST_CODES, _MOST_SAID_CHARS = 20, 300
# A name may stand in a path; neither goes on as a longer name.
_BEFORE, _AFTER = r"(?<![\w.-])", r"(?![\w-]|\.\w)"
_DIRECTORIES = lazily(r"(?:[\w.~@+:-]*[/\\])+\Z")
# Words that run the rest of a command.
_RUNNERS = word_set(
    "sudo doas env time nohup nice command exec run xargs npx uvx bunx bash sh zsh python python3 node ruby perl"
)
_ASSIGNMENT = lazily(r"\w+=")
_OPERATOR = lazily(r"[;&|()<>\n]+")
_CODE = lazily(r"`([^`\n]+)`|\"([^\"\n]+)\"|(?<!\w)'([^'\n]+)'(?!\w)")
_PLACEHOLDER = lazily(r"[<>{}$*…]|\.\.\.")
_ARGUMENT = lazily(r"[\d/._=:@\\]|\A-")
_ENDS = ".,;:!?)]\"'`”’"
# A code by which an error is known: TS2345, ERR_OSSL_UNSUPPORTED, ECONNREFUSED.
_ERROR_CODE = lazily(r"(?<![\w-])(?=[A-Z_]*\d|[A-Z\d]*_|E[A-Z])[A-Z][A-Z\d_]{4,}(?![\w-])")
_NO_CODES = word_set("ERROR ERRORS EXIT_CODE")
_FAILED = lazily(r"(?i)\bexit(?:ed with)? (?:code|status):? (?!0\b)-?\d+")
_FEWEST_SAID = 3
_SENTENCE = lazily(r"(?<=[.!?])\s+|\n+")
_BULLET, _LABEL = lazily(r"^[\s*•>#-]+"), lazily(r"^[^:]{1,80}:\s")
_FUNCTION_WORDS = (STOP_WORDS | lx.PREPOSITIONS | lx.CONJUNCTIONS | lx.MODALS) - {"up", "down"}
_POLITE = word_set("please also and now then ok okay so just next first")
_REPORTS = word_set("i i've i'll i'm we've let let's done")


class NamedFile(NamedTuple):
    """A file of a tool: its path from the root of its project and its whole path, with `/`; `path` is empty outside."""

    path: str
    whole: str

    @property
    def name(self) -> str:
        """Its last part."""
        return self.whole.rpartition("/")[2]


def names_file(text: str, file: NamedFile, namesakes: Callable[[str], int]) -> bool:
    """Whether a text names a file: by its path, or by an end of it that only this file has in its project.

    `namesakes` says of how many files there a path is the end.
    """
    for match in re.finditer(f"{_BEFORE}{re.escape(file.name)}{_AFTER}", text):
        before = _DIRECTORIES.search(text[max(0, match.start() - _MOST_SAID_CHARS) : match.start()])
        path = (before[0] if before else "").replace("\\", "/").removeprefix("./") + file.name
        if path == file.name and not re.search(r"[.\W_A-Z]", path) and text[match.start() - 1 : match.start()] != "`":
            continue  # a word like any other
        if path in (file.path, file.whole) or (file.path and path.endswith(f"/{file.path}") and _ends(file, path)):
            return True
        if _ends(file, path) and file.path and namesakes(path) <= 1:
            return True
    return False


def _ends(file: NamedFile, path: str) -> bool:
    return f"/{file.whole}".endswith(f"/{path.lstrip('/')}")


def commands_of(text: str) -> list[list[str]]:
    """The words of each simple command of a shell's line, without assignments; of what runs another, both."""
    text = text[:_MOST_COMMAND_CHARS].partition("<<")[0]
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        words = [*lexer]
    except ValueError:  # a quote without an end
        words = text.split()
    commands: list[list[str]] = [[]]
    for word in words:
        if _OPERATOR.fullmatch(word):
            commands.append([])
        elif commands[-1] or not _ASSIGNMENT.match(word):
            commands[-1].append(word)
    found = []
    for command in commands[:_MOST_COMMANDS]:
        found += [command[start:] for start in _starts(command)]
    return found


def _starts(command: Sequence[str]) -> Iterator[int]:
    """Where programs stand in a command."""
    runs = True
    for i, word in enumerate(command):
        if runs and not word.startswith("-") and not _ASSIGNMENT.match(word):
            yield i
            runs = False
        runs = runs or program_of(word) in _RUNNERS


def program_of(word: str) -> str:
    """The name of the program that a word runs."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")


def names_command(text: str, command: Sequence[str]) -> bool:
    """Whether a text names a command: its program and subcommand, and no more than is run.

    In code all words have to be in the command. Elsewhere what follows the subcommand has to be said of it: of "docker
    compose down loses the data" nothing is about `docker compose up`.
    """
    program, rest = program_of(command[0]), command[1:]
    if program.lower() not in text.lower():
        return False
    words = {word for word in rest if not word.startswith("-")}
    # The value of an option may stand before it.
    places = [i for i, word in enumerate(rest) if not word.startswith("-")]
    follow = {rest[i] for i in places[:1]} | {
        rest[i] for before, i in pairwise(places) if before and rest[before - 1].startswith("-")
    }
    has_subcommand = any(not _ARGUMENT.search(word) for word in follow)
    for code in islice(_CODE.finditer(text), _MOST_CODES):
        for said in commands_of(code[code.lastindex or 0]):
            if program_of(said[0]).lower() != program.lower():
                continue
            more = [word for word in said[1:] if not _PLACEHOLDER.search(word)]
            if {*more} <= {*rest} and (follow & {*more} if has_subcommand else True):
                return True
    plain = _CODE.sub(lambda code: " " * len(code[0]), text)
    return any(
        _is_said(plain[match.end() : match.end() + _MOST_SAID_CHARS], rest, follow if words else set())
        for match in re.finditer(rf"(?i)(?<![\w./-]){re.escape(program)}(?=\s)", plain)
    )


def _is_said(after: str, rest: Sequence[str], follow: set[str]) -> bool:
    """Whether the words after a program's name are those of its command, as far as they go."""
    found, expected = False, [*rest]
    for said in after.split()[:12]:
        word = said if said in expected else said.rstrip(_ENDS)
        if word in expected:
            found = found or word in follow or not follow
            expected = expected[expected.index(word) + 1 :]
        elif _ARGUMENT.search(word) or not (found and (not expected or _is_prose(word))):
            return False  # another command, or not one
        else:
            break
        if said != word:
            break
    return found


def _is_prose(word: str) -> bool:
    """Whether a word goes on a sentence, not a command."""
    read, lower = next(iter(read_words(word)), None), word.lower()
    return (
        read is None
        or not word.isascii()
        or (lower in _FUNCTION_WORDS)
        or (read.text.endswith(("s", "ed")) and read.text != stem_of(read.text) and read.stem in lx.VERBS)
    )


def failure_of(response: str) -> str:
    """What a tool says of its failure, if it says that it has failed."""
    return response if _FAILED.search(response) else ""


def names_error(text: str, error: str) -> bool:
    """Whether a text names an error: by a code, or by its message, whole where either of the two ends."""
    codes, lines = _read_error(error[:_MOST_ERROR_CHARS])
    if codes and not codes.isdisjoint(_ERROR_CODE.findall(text)):
        return True
    said = text.split()
    keys = [*map(_key, said)]
    return any(_is_message(said, keys, words) for end in {*keys} & lines.keys() for words in lines[end])


@lru_cache(maxsize=8)
def _read_error(error: str) -> tuple[frozenset[str], dict[str, list[list[str]]]]:
    """The codes of an error, and the words of each of its lines, by the last of them."""
    lines: dict[str, list[list[str]]] = {}
    for line in error.splitlines():
        if words := [word for word in line.split() if _key(word)]:
            lines.setdefault(_key(words[-1]), []).append(words)
    return frozenset(_ERROR_CODE.findall(error)) - _NO_CODES, lines


def _is_message(said: Sequence[str], keys: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a text has the end of a line of an error, from its beginning or from after a colon on."""
    line = [*map(_key, words)]
    begins = [0, *(i + 1 for i, word in enumerate(words) if word.endswith(":"))]
    for begin in begins:
        part = line[begin:]
        if len(part) < _FEWEST_SAID or all(key.lower() in STOP_WORDS for key in part):
            continue
        for i, key in enumerate(keys):
            if (
                key == part[0]
                and keys[i : i + len(part)] == part
                and not (i and said[i - 1].endswith(":") and begin and _key(words[begin - 1]) != keys[i - 1])
            ):
                return True
    return False


def _key(word: str) -> str:
    return word.strip("\"'`“”‘’()[]{}<>.,;:!?*")


def sentences_naming(
    text: str, names: Callable[[str], bool], said_by: str | None, program: str = ""
) -> list[str]:  # fmt: skip
    """The sentences of a memory that name something and say what holds of it.

    `said_by` is who said it in a session, if it is a turn of one. What was asked for once says nothing of the thing,
    nor do questions, nor what an assistant reports to have done. A `program` may have the name of a verb.
    """
    return [
        sentence.strip()
        for sentence in _SENTENCE.split(text)
        if names(sentence)
        and not (said_by and (_asks(sentence, program) or (said_by == "assistant" and _reports(sentence))))
    ]


def _asks(sentence: str, program: str) -> bool:
    """Whether a sentence is a question, or asks for something once."""
    if sentence.rstrip().endswith("?"):
        return True
    words = _opening(sentence)
    if not words or instructions_of(sentence):
        return False
    word, following = words[0], [word.text for word in words[1:]]
    if word.text in lx.MODALS and following[:1] in (["you"], ["us"], ["we"]):
        return True
    if word.text == program and any(map(_is_prose, following[1:])):  # "make deploy without a tag fails"
        return False
    return word.text in VERBS or (
        word.stem in lx.VERBS and word.text == word.base and not word.text.endswith(("s", "ed"))
    )


def _reports(sentence: str) -> bool:
    """Whether a sentence, or what it says after a label, begins with who has done something or with what was done."""
    bare = _BULLET.sub("", sentence)
    openings = [_opening(bare), _opening(_LABEL.sub("", bare))]
    return any(
        words[0].text in _REPORTS or words[0].text in lx.SPEAKERS or words[0].text.endswith("ed")
        for words in filter(None, openings)
    )


def _opening(sentence: str) -> list[Word]:
    """The words of a sentence from the first on that says something."""
    words = read_words(_BULLET.sub("", sentence))
    for i, word in enumerate(words):
        if word.text not in _POLITE and word.kind not in (lx.COMMA, lx.MARK, lx.STOP):
            return words[i:]
    return []
