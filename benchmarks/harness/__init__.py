"""The harness of all benchmarks.

`case.Case` is a question with its data and ways, `running.run` times it, `report` saves and renders it.
"""
