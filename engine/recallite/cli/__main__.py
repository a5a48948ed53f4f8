"""`python -m recallite.cli`."""

import sys

from recallite.cli import main

sys.exit(main())
