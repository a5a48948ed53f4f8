"""Reviews of a store: what should not be in it, and what a person's own questions find, miss and lose where."""

from recallite_eval.evaluate import evaluate as evaluate
