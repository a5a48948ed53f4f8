"""A person's own questions, asked of their own store: what is found, what is missed, and which stage lost it."""

from recallite_eval.evaluate import evaluate as evaluate
