"""Statements that say they are over: "I used to live in Berlin", "Uses TSLint. Replaced by ESLint"."""

from __future__ import annotations

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.other_languages import is_former
from recallite.text.statements.statement import Statement
from recallite.text.statements.statement_words import IDENTIFIER, NAME
from recallite_kernels.arguments import DENIED, ENDED


def over_of(statement: Statement) -> int:
    """`ENDED` if all that a statement says is over, `DENIED` if it says that something no longer holds, else 0."""
    if is_former(statement):
        return ENDED
    clauses = statement.clauses
    if not clauses or not statement.whole or any(clause.unreal or clause.sourced for clause in clauses):
        return 0
    if all(clause.former for clause in clauses) or _is_replaced(statement):
        return ENDED
    return DENIED if len(clauses) == 1 and clauses[0].stopped and not clauses[0].plan else 0


def successor_of(statement: Statement) -> frozenset[str]:
    """The keys of the names in "it was replaced by B"; empty for a statement that does not end so."""
    if not _is_replaced(statement):
        return frozenset()
    return frozenset(
        [
            word.key
            for _, words in statement.clauses[-1].chunks
            for word in words
            if word.kind == NAME or word.kind == IDENTIFIER
        ]
    )


def _is_replaced(statement: Statement) -> bool:
    """Whether the last clause says that what the others are about was replaced: "..., it was replaced by B"."""
    last = statement.clauses[-1] if statement.clauses else Clause()
    done = last.past or last.perfect
    unnamed = last.subject <= lx.UNRESOLVED
    return last.relation == "replac" and last.passive and done and unnamed and not (last.negated or last.plan)
