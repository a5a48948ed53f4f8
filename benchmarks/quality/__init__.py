"""Retrieval quality on public sets, through the public API: python -m benchmarks.quality --data DIR."""
