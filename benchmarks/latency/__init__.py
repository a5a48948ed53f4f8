"""Latency at size, with real embeddings: python -m benchmarks.latency --records 100000 --corpus FILE."""
