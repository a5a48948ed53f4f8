"""Benchmark cases: each module has a `CASE`, which `python -m benchmarks NAME` runs."""
