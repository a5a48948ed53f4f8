"""Policies: what writing does besides storing, and how episodes are consolidated. `Settings` holds them."""

from typing import Annotated, Any, Literal

from recollect.configuration import Count, NonNegative, Section, Setting, Share
from recollect.errors import InvalidInput
from recollect.text.secrets import NO_DETECTOR, has_detector, redact, redact_all

MergeStrategy = Literal["append", "latest", "replace"]


class WritePolicy(Section, frozen=True, kw_only=True):
    """How a write treats similar records of its own scope and kind; by default it only stores.

    Texts that are embedded in several parts are linked by their nearest parts. They are duplicates only when equal,
    and share a topic only when it is given.

    - merge_strategy: For records of one topic: `append` keeps all, `latest` stores the new text as the next version,
      `replace` does so and purges the old text unless the record is pinned. Of several records the last changed is
      taken.
    - topic_cosine: Without a given topic, the nearest record with at least this cosine shares the topic, unless the
      texts differ in numbers, dates, units, versions, negations, names, identifiers or subject: 'I take the bus'
      replaces 'I take the train', but 'MySQL 8.4' does not replace 'MySQL 8.0'.
    - duplicate_cosine: A record with at least this cosine whose numbers, negations and content words agree is the same
      memory: nothing is stored. An equal text is one without any vector.
    - recognise_recalled: Do not store again what a recall in the scope may have returned, quoted line by line.
      Bullets, scores and the memory's own fields around it are ignored; with any other text around it, it is new.
    - link_cosine: Link to records with at least this cosine, as `similar` with the cosine as strength.
    - most_links: Links made by `link_cosine` for a record.
    - contradiction_cosine: `remember` reports records with at least this cosine that may contradict the text (rules
      for English).
    - resolve_dates: Resolve dates in the text, such as 'last Tuesday', to `event_at` and `event_until` where none is
      given.
    - junk: `skip` does not store a text that is only a greeting, thanks, agreement or tool noise (rules for English);
      `store` does. What has a topic, is pinned or answers a question of its context is stored, and so are episodes.
    - redact: `secrets` replaces keys, tokens, passwords, card numbers and IBANs, as '[redacted: card number]', before
      anything is embedded or stored: in text, context and metadata, and in the settings' policy also in messages,
      snapshots, working memory and documents. Names (tags, sources, topics, scopes) are kept. It needs the extra
      `audit`.
    """

    merge_strategy: MergeStrategy = "append"
    topic_cosine: Share | None = None
    duplicate_cosine: Share | None = None
    recognise_recalled: bool = False
    link_cosine: Share | None = None
    most_links: int = 10
    contradiction_cosine: Share | None = None
    resolve_dates: bool = True
    junk: Literal["store", "skip"] = "store"
    redact: Literal["secrets"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.redact is not None and not has_detector():
            raise InvalidInput(NO_DETECTOR)

    @property
    def idle(self) -> bool:
        """Whether writing only stores."""
        return self.floor is None and self.merge_strategy == "append" and not self.recognise_recalled

    def clean(self, text: str) -> str:
        """The text without what `redact` removes."""
        return text if self.redact is None else redact(text)

    def clean_json(self, value: Any) -> Any:
        """A JSON value without what `redact` removes from its strings."""
        return value if self.redact is None else redact_all(value)

    @property
    def floor(self) -> float | None:
        """The least cosine that has an effect; None where vectors are not compared."""
        linked = self.link_cosine if self.most_links else None
        given = [self.topic_cosine, self.duplicate_cosine, self.contradiction_cosine, linked]
        return min((cosine for cosine in given if cosine is not None), default=None)


class Consolidation(Section, frozen=True, kw_only=True):
    """How episodes are consolidated.

    - threshold: New episodes of an agent after which a cycle runs by itself.
    - decay_factor: Factor by which each cycle multiplies the importance of episodes.
    - prune_threshold: Episodes below this importance are deleted; 0 deletes none.
    - cycles_a_recall: Cycles by which each recall of an episode delays its deletion.
    - extract: Have the language model, where there is one, find lasting facts in the new episodes.
    """

    threshold: Count = 10
    decay_factor: Annotated[float, Setting(above=0, maximum=1)] = 0.95
    prune_threshold: Share = 0.1
    # On LoCoMo 10 lost .007 of recall@20 for 4 % of the episodes, 3 .088 for 14 %, 0 .290 for 33 %.
    cycles_a_recall: NonNegative = 10.0
    extract: bool = False
