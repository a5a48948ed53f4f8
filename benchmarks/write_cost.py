"""Runs the case `write_cost`: python -m benchmarks.write_cost [--records N ...]."""

import sys

from benchmarks.environment import embed_each_question
from benchmarks.harness.running import main

if __name__ == "__main__":
    embed_each_question()
    main(["write_cost", *sys.argv[1:]])
