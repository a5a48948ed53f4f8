"""Runs the case `latency`: python -m benchmarks.latency [--records N ...]."""

import sys

from benchmarks.harness.running import main

if __name__ == "__main__":
    main(["latency", *sys.argv[1:]])
