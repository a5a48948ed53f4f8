"""`memory.review`: what a memory finds, what it should not hold, and why."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Unpack

from recallite.engine import Namespace
from recallite.model.checks import check_count, check_flag
from recallite.model.filters import Filter, FilterFields, bound_filter
from recallite.model.records import Explanation
from recallite.model.reports import Audit, Evaluation, Judged, UndonePair
from recallite.recall import explain as explaining
from recallite.recall.request import RecallOptions, build_request
from recallite.remember import pending
from recallite.remember.relations import find_row_id, undone_pairs
from recallite.store.store import Progress
from recallite.system import plugins
from recallite.system.asynchrony import AsyncService, awaited


class MemoryReview(Namespace):
    """Reviews of what is stored, by rules, by questions with known answers, and by a language model."""

    def audit(
        self,
        checks: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        mend: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> Audit:
        """Find memories that should not be stored; nothing is changed unless `mend` is True.

        `checks` (all but the last four): "duplicates", "near-duplicates" and "contradictions" within a scope and kind;
        "stale" (relative times that have passed, such as "next week" a month ago, and memories not recalled for a
        year); "expired"; "secrets" (keys, tokens, passwords, card numbers, IBANs);
        "instructions" to a model; "junk" (small talk); for review, and only by name, "superseded" (what others stand in
        the place of), "replaced-by-rule" (those of them that rules or a language model found, the newest first;
        `restore` undoes one), "unjudged" (pairs that wait for a language model) and "diverged" (texts that two devices
        had changed before `transfer.sync`; the later one is current). Checks of texts are for English.

        Each finding names the method that `mend` calls, or none where a person has to decide: two memories that
        contradict each other may both hold. A pinned memory is never forgotten. The times of a duplicate go to the one
        that stays.

        Raises InvalidInput for an unknown check, and for `mend` without `checks`.
        """
        if isinstance(checks, str):
            checks = [checks]
        selected = bound_filter(self._scope, filter, fields, takes_as_of=False)
        audit: Audit = plugins.load("functions", "audit")(
            self._engine, checks, selected, mend=check_flag(mend, "mend"), on_progress=on_progress
        )
        return audit

    def evaluate(
        self,
        /,
        questions: str | os.PathLike[str] | IO[str] | Iterable[Mapping[str, Any]],
        *,
        k: int = 10,
        against: Mapping[str, Any] | Evaluation | None = None,
        on_progress: Progress | None = None,
        **options: Unpack[RecallOptions],
    ) -> Evaluation:
        """Ask questions whose answers are known, and report what the first `k` hits of each find and miss.

        `questions` are dicts, or a file or text stream of JSON lines: `question`; `expected`, the memories to be found,
        each by its text, a unique part of its text, its id or a unique start or end of that (none: the store has no
        answer); and, if needed, `id` and the fields of a filter, such as `scope` or `as_of`. `options` are those of
        `recall`. `against` are options that differ in a second run, which is compared with the first by question; or it
        is an earlier report, as of another embedder, with which this one is compared.

        An expected text that is not in the store is no miss: `Evaluation.not_stored` lists it. The store does not
        change: hits are not counted as accesses. All questions are asked at one time; give `as_of` to have the same
        ages in a later evaluation.

        Raises InvalidInput for a bad option and a bad question, whose line it names, before any is asked.
        """
        evaluation: Evaluation = plugins.load("functions", "evaluate")(
            self._engine, questions, base=self._scope, k=k, options=options, against=against, on_progress=on_progress
        )
        return evaluation

    def undone(self) -> list[UndonePair]:
        """List what the rules had superseded and `restore` undid: pairs to evaluate the rules with, newest undo first.

        Nothing learns from them by itself. `recallite eval --undone` writes them as JSON lines.
        """
        return undone_pairs(self._engine, self._scope)

    def judge(self, *, limit: int | None = None) -> Judged:
        """Ask the language model about pairs of statements whose relation the rules leave open.

        With a language model, each write does so in the background; this waits for it. At most `limit` pairs, all by
        default. The model says whether the newer statement supersedes the older one, contradicts it, or neither; marks
        have the reason "language model", and `restore` undoes them.

        Raises InvalidInput without a language model and LanguageModelError where it fails; the rest still waits.
        """
        self._require_whole("review.judge")
        most = None if limit is None else check_count(limit, "limit")
        return pending.judge_waiting(self._engine, limit=most)

    def explain(
        self,
        /,
        query: str,
        id: str,
        *,
        limit: int | None = None,
        vector: object = None,
        **options: Unpack[RecallOptions],
    ) -> Explanation:
        """Explain why a memory is or is not among the hits of a query: the stage that dropped it, signals and ranks.

        If a language model finds sub-queries, it is asked again.
        """
        request = build_request(self._scope, self._engine.settings.profile, limit=limit, **options)
        with self._engine.store.read() as reader:
            row_id = find_row_id(reader, id, self._scope)
        return explaining.explain(self._engine, query, None if vector is None else [vector], id, row_id, request)


class AsyncMemoryReview(AsyncService[MemoryReview]):
    """`MemoryReview` for asyncio: the same methods, awaited."""

    audit = awaited(MemoryReview.audit)
    evaluate = awaited(MemoryReview.evaluate)
    undone = awaited(MemoryReview.undone)
    judge = awaited(MemoryReview.judge)
    explain = awaited(MemoryReview.explain)
