"""Runs the case `latency`: python -m benchmarks.latency [--records N ...]."""

import sys

from benchmarks.environment import embed_each_question
from benchmarks.harness.running import main

if __name__ == "__main__":
    embed_each_question()
    main(["latency", *sys.argv[1:]])
