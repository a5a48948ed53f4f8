"""Runs a case: python -m benchmarks CASE [--records N ...] [--corpus FILE] [--cache DIR]; `list` names them."""

from benchmarks.environment import embed_each_question
from benchmarks.harness.running import main

if __name__ == "__main__":
    embed_each_question()
    main()
