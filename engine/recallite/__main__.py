"""`python -m recallite`: the command line."""

import sys

try:
    from recallite_server.main import main
except KeyboardInterrupt:  # `main` says what an interrupt has left, once it is there
    sys.exit(130)

sys.exit(main())
