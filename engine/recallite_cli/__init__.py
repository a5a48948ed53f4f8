"""The command line: parses arguments, calls `Memory`, prints. What it can do, `Memory` can do."""
