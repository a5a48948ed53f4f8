"""Runs a case: python -m benchmarks CASE [--records N ...] [--corpus FILE] [--cache DIR]; `list` names them."""

from benchmarks.harness.running import main

if __name__ == "__main__":
    main()
