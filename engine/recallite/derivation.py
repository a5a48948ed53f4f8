"""Deriving what a store has of a text beside it: words, standing, the keys, frames and outline of its statement.

Writes, repair and checks derive with the same function. A store takes what it makes, and reads no text itself.
"""

from __future__ import annotations

from functools import cached_property

from recallite.model.filters import CHUNK_KIND, MESSAGE_KIND
from recallite.store.columns import StatementForm, Texts, Words
from recallite.text.reading import Reading, read_texts
from recallite.text.standing import Standing, standing_of_each
from recallite.text.statements import frames_of, outline_of, statement_of
from recallite.text.statements.keys import record_keys
from recallite.text.words import content_hash

WITHOUT_STATEMENTS = (CHUNK_KIND, MESSAGE_KIND, "episode", "procedure")
"""Kinds without statements: no later text supersedes what happened, what a file says and how to do something."""


class TextDerivation:
    """The parts derived from texts, each made when it is first asked for."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    @cached_property
    def reading(self) -> Reading:
        """The words of the texts, and which may name dates."""
        contexts, tags = self._texts.contexts, self._texts.tags
        return read_texts(self._texts.texts, contexts if any(contexts) else None, tags if any(tags) else None)

    @property
    def words(self) -> Words:
        """The words of the texts."""
        return Words(*self.reading[:4])

    @cached_property
    def standing(self) -> list[Standing | None]:
        """Whether each is a standing instruction or preference; only the user's word is one."""
        kinds, authorities, _, _, said, contexts, _ = self._texts
        if any(authorities):
            said = ["" if authority else text for authority, text in zip(authorities, said, strict=True)]
        return standing_of_each(zip(kinds, said, contexts, strict=True))

    @cached_property
    def hashes(self) -> list[bytes]:
        """The `content_hash` of each text under its context."""
        return [*map(content_hash, self._texts.texts, self._texts.contexts)]

    def statement(self, i: int) -> StatementForm | None:
        """The form of the statement of text i; None if nothing is stored of it. A closed version has no keys."""
        _ = self.standing  # of all texts at once, where the keys of instructions ask for each
        texts = self._texts
        if texts.kinds[i] in WITHOUT_STATEMENTS:
            return None
        # A turn of a transcript is evidence of what was said: nothing supersedes it, so that nothing has to find it.
        text, context, turn = texts.texts[i], texts.contexts[i], texts.positions[i] is not None
        keys = () if turn or texts.recorded_until[i] is not None else record_keys(text, context).stored
        frames = self.frames(i)
        if not keys and not frames:
            return None
        return StatementForm(keys, frames, outline_of(text, context) if keys else b"")

    def frames(self, i: int) -> tuple[tuple[int, int], ...]:
        """The frames of the statement of text i."""
        texts = self._texts
        text = texts.texts[i]
        if texts.kinds[i] in WITHOUT_STATEMENTS or "?" in text:
            return ()
        return frames_of(statement_of(text, texts.contexts[i]), turn=texts.positions[i] is not None)


derive = TextDerivation
"""Derives from texts what a store has of each."""
