"""Attacks on a store, and what came of them. Each module is one attack; it says what it does and what would fail it.

`python -m tests.attacks` runs them at length and saves a table; `tests/attacks/` runs each for seconds.
"""
