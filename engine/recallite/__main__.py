"""`python -m recallite`: the command line."""

import sys

from recallite_server.main import main

sys.exit(main())
