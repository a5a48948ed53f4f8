"""`python -m recallite.doors.warm`: the resident process, which `recallite warm start` starts."""

from recallite.doors.warm.running import main

main()
