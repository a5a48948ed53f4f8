"""Recall of two commits, round about, in one run."""
