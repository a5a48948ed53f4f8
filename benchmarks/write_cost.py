"""Runs the case `write_cost`: python -m benchmarks.write_cost [--records N ...]."""

import sys

from benchmarks.harness.running import main

if __name__ == "__main__":
    main(["write_cost", *sys.argv[1:]])
