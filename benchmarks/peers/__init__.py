"""Recallite beside what a user would pick instead, each in its own process on the same data."""
