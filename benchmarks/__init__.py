"""Measurements of Recollect: retrieval quality, latency, and pytest-benchmark cases."""
