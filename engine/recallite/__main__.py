"""`python -m recallite`: the command line."""

import sys

from recallite.doors.cli import main

sys.exit(main())
