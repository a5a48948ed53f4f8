"""Policies: what writing does besides storing, and how episodes are consolidated. `Settings` holds them."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, structs

from recollect.checks import check_choice, check_count, check_finite, check_unit, shown
from recollect.errors import InvalidInput
from recollect.text.secrets import NO_DETECTOR, has_detector, redact, redact_all

__all__ = ["Consolidation", "MergeStrategy", "WritePolicy"]

MergeStrategy = Literal["append", "latest", "replace"]


class WritePolicy(Struct, frozen=True, kw_only=True):
    """How a write treats what is near it in its own scope and kind; by default it stores and looks at nothing else.

    - merge_strategy: for records of one topic. "append" keeps all; "latest" makes the new text the next version of the
      record that is there, "replace" does so and purges the old text, save a pinned one's. Where several are there,
      which "append" has kept, the last changed is taken and the others stay.
    - topic_cosine: without a topic given, the nearest record from here on is of the same topic, unless the texts name
      different things: numbers, dates, times, units, versions, negations, names (words with a capital), identifiers,
      or another subject ("the left tyre", "the right tyre"). So "I take the bus" takes the place of "I take the
      train", and "MySQL 8.4" does not take that of "MySQL 8.0": give a topic for that. None detects none.
    - duplicate_cosine: from here on a record is the same memory, if both texts also agree in their numbers, negations
      and telling words, and nothing is stored; nor is an equal text, which takes no vector. None looks for none.
    - recognise_recalled: a text that is, or quotes line by line, what a recall in its scope may have returned, of any
      kind, is not stored again. Around it may stand bullets, scores, and what is true of that memory (id, scope, tags,
      when it was created); with anything else around it, it is new.
    - link_cosine, most_links: link to what is at least so near, as "similar", the cosine being the link's strength;
      None links nothing.
    - redact: "secrets" replaces keys, tokens, passwords, card numbers and IBANs, as "[redacted: card number]", before
      anything is embedded or stored: in text, context and metadata of memories. In the settings' policy it holds for
      every call, and for messages, snapshots, recoveries, saved working memory and documents. Names (tags, sources,
      topics, scopes) stay. It needs the extra `audit`. None keeps texts as they are.
    - contradiction_cosine: `remember` reports records at least so near that seem to say otherwise: candidates, by
      rules for English. None reports none.

    Texts that are embedded in several parts are linked by their nearest parts, and are duplicates or of one topic only
    when equal or when the topic is given.
    """

    merge_strategy: MergeStrategy = "append"
    topic_cosine: float | None = None
    duplicate_cosine: float | None = None
    recognise_recalled: bool = False
    link_cosine: float | None = None
    most_links: int = 10
    contradiction_cosine: float | None = None
    redact: Literal["secrets"] | None = None

    def __post_init__(self) -> None:
        check_choice(self.merge_strategy, "merge_strategy", ("append", "latest", "replace"))
        for name in ("topic_cosine", "duplicate_cosine", "link_cosine", "contradiction_cosine"):
            if getattr(self, name) is not None:
                check_unit(getattr(self, name), name)
        if not isinstance(self.recognise_recalled, bool):
            raise InvalidInput(f"recognise_recalled is {shown(self.recognise_recalled)}: True or False")
        check_count(self.most_links, "most_links", minimum=0)
        if self.redact not in (None, "secrets"):
            raise InvalidInput(f"redact is {shown(self.redact)}: 'secrets' or None")
        if self.redact is not None and not has_detector():
            raise InvalidInput(NO_DETECTOR)

    @property
    def idle(self) -> bool:
        """True when writing only stores."""
        return self.floor is None and self.merge_strategy == "append" and not self.recognise_recalled

    def clean(self, text: str) -> str:
        """The text without what `redact` keeps out."""
        return text if self.redact is None else redact(text)

    def clean_json(self, value: Any) -> Any:
        """A JSON value whose strings are without what `redact` keeps out."""
        return value if self.redact is None else redact_all(value)

    @property
    def floor(self) -> float | None:
        """The least cosine at which anything is done; None when vectors are not compared."""
        linked = self.link_cosine if self.most_links else None
        given = [self.topic_cosine, self.duplicate_cosine, self.contradiction_cosine, linked]
        return min((cosine for cosine in given if cosine is not None), default=None)


class Consolidation(Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """How episodes are consolidated.

    - threshold: after so many new episodes of an agent a cycle runs by itself
    - decay_factor: each cycle multiplies the importance of episodes by it
    - prune_threshold: episodes that fall below are deleted; 0 deletes none
    - decayFactor, pruneThreshold: what Reactive Agents calls the two; given, they set them, and are None themselves
    - cycles_a_recall: each recall of an episode holds off its deletion for so many cycles
    - extract: have the language model, where there is one, find lasting facts in the new episodes
    """

    threshold: int = 10
    decay_factor: float = 0.95
    prune_threshold: float = 0.1
    # On LoCoMo 10 lost .007 of recall@20 for 4 % of the episodes, 3 .088 for 14 %, 0 .290 for 33 %.
    cycles_a_recall: float = 10.0
    extract: bool = False
    decayFactor: float | None = None  # noqa: N815
    pruneThreshold: float | None = None  # noqa: N815

    def __post_init__(self) -> None:
        check_count(self.threshold, "threshold")
        for alias, name, default in (("decayFactor", "decay_factor", 0.95), ("pruneThreshold", "prune_threshold", 0.1)):
            given = getattr(self, alias)
            if given is None:
                continue
            check_unit(given, alias)
            if getattr(self, name) not in (default, given):
                raise InvalidInput(f"{alias} is {shown(given)} and {name} is {shown(getattr(self, name))}: give one")
            structs.force_setattr(self, name, given)
            structs.force_setattr(self, alias, None)
        check_unit(self.decay_factor, "decay_factor")
        check_unit(self.prune_threshold, "prune_threshold")
        check_finite(self.cycles_a_recall, "cycles_a_recall", minimum=0.0)
        if check_finite(self.decay_factor, "decay_factor") <= 0:
            raise InvalidInput("decay_factor is 0: everything would be forgotten in one cycle; give a number above 0")
        if not isinstance(self.extract, bool):
            raise InvalidInput(f"extract is {shown(self.extract)}: True or False")
