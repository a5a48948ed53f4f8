"""Measurements of Recallite: retrieval quality, latency, and pytest-benchmark cases."""
