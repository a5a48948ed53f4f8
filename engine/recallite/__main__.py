"""`python -m recallite`: the command line."""

import sys

try:
    from recallite_server.main import process
except KeyboardInterrupt:  # `process` says what an interrupt has left, once it is there
    sys.exit(130)

process()
