"""`python -m recallite_server.warm`: the resident process, which `recallite warm start` starts."""

from recallite_server.warm.running import main

main()
