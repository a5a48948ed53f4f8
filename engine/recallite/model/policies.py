"""Policies: what writing does besides storing, and how episodes are consolidated. `Settings` holds them."""

from typing import Annotated, Any, Literal

from recallite.model.authority import Authority, SourceAuthorities, check_authorities
from recallite.model.configuration import Count, NonNegative, Section, Setting, Share
from recallite.text.secrets import redact, redact_all

MergeStrategy = Literal["append", "latest", "replace"]


class WritePolicy(Section, frozen=True, kw_only=True):
    """Effects of a write on similar records of its own scope and kind.

    By default a text that replaces what an older one says supersedes it, contradictions are linked, and repeated
    statements are counted. Nothing is deleted or changed by that, and `restore` undoes it. Episodes, chunks, procedures
    and turns of a transcript (records with a position) are evidence, and left as they are. The rules are for English;
    in other languages they find equal texts, numbers and names.

    - supersede_confidence: A record is superseded by a text that replaces it with at least this confidence: the same
      statement with another value, or its end. Plain recall no longer shows it; `history` does. None supersedes none.
    - contradict_confidence: Records that contradict the text with at least this confidence, or may be superseded by it,
      are linked to it as `contradicts`, and `remember` reports them. None finds none.
    - duplicates: `count` stores a statement once, with the times at which it was remembered, where nothing else that is
      given differs. `store` stores it again.
    - compare: Records that are written 64 or more at a time are compared with others `later`, in the background, or
      `now`, which takes four times as long. A single write always compares now; equal texts are always counted now.
    - several_values: More words for relations that hold several values at a time, such as 'likes' and 'owns'.
    - judge: Have the language model, where there is one, judge in the background what the rules leave open.
    - resolve_dates: Resolve dates in the text, such as 'last Tuesday', to `valid_from` and `valid_until` where none is
      given.
    - merge_strategy: For records of one topic: `append` keeps all, `latest` stores the new text as the next version,
      `replace` does so and purges the old text unless the record is pinned. Of several records the last changed is
      taken.
    - topic_cosine: Without a given topic, the nearest record with at least this cosine shares the topic, unless the
      texts differ in numbers, dates, units, versions, negations, names, identifiers or subject: 'I take the bus'
      replaces 'I take the train', but 'MySQL 8.4' does not replace 'MySQL 8.0'. Not for texts that are embedded in
      several parts.
    - recognise_recalled: Do not store again what a recall in the scope may have returned, quoted line by line.
      Bullets, scores and the memory's own fields around it are ignored; with any other text around it, it is new.
    - link_cosine: Link to records with at least this cosine, as `similar` with the cosine as strength. Of texts that
      are embedded in several parts the nearest parts count.
    - most_links: Links made by `link_cosine` for a record.
    - junk: `skip` does not store a text that is only a greeting, thanks, agreement or tool noise (rules for English);
      `store` does. What has a topic, is pinned or answers a question of its context is stored, and so are episodes.
    - redact: `secrets` replaces keys, tokens, passwords, card numbers and IBANs, as '[redacted: card number]', before
      anything is embedded or stored: in text, context and metadata, and in the settings' policy also in messages,
      snapshots, working memory and documents. Names (tags, sources, topics, scopes) are kept. Hooks and imports from
      other systems always do so.
    - authority: Whose word a text is: `user`, `agent`, `tool`, `document` or `web`, or pairs of a pattern of sources
      and one of these, such as ("https://*", "web"); the first that fits counts, else `user`. A source that is a URL, a
      context such as 'assistant' or 'tool', and a chunk of a document lower it. A lower authority supersedes, repeats
      or replaces nothing of a higher one: it is linked as `contradicts`. Nor does any supersede a pinned record.
    """

    supersede_confidence: Share | None = 0.8
    contradict_confidence: Share | None = 0.6
    duplicates: Literal["count", "store"] = "count"
    compare: Literal["later", "now"] = "later"
    several_values: tuple[str, ...] = ()
    judge: bool = True
    resolve_dates: bool = True
    merge_strategy: MergeStrategy = "append"
    topic_cosine: Share | None = None
    recognise_recalled: bool = False
    link_cosine: Share | None = None
    most_links: int = 10
    junk: Literal["store", "skip"] = "store"
    redact: Literal["secrets"] | None = None
    authority: Annotated[Authority | SourceAuthorities, Setting(check=check_authorities)] = "user"

    @property
    def compares(self) -> bool:
        """Whether a text is compared with the statements stored."""
        marks = self.supersede_confidence is not None or self.contradict_confidence is not None
        return marks or self.duplicates == "count"

    def clean(self, text: str) -> str:
        """The text without what `redact` removes."""
        return text if self.redact is None else redact(text)

    def clean_json(self, value: Any) -> Any:
        """A JSON value without what `redact` removes from its strings."""
        return value if self.redact is None else redact_all(value)

    @property
    def floor(self) -> float | None:
        """The least cosine for which all vectors are searched; None where they are not."""
        linked = self.link_cosine if self.most_links else None
        return min((cosine for cosine in (self.topic_cosine, linked) if cosine is not None), default=None)


class Consolidation(Section, frozen=True, kw_only=True):
    """Settings of consolidation.

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
