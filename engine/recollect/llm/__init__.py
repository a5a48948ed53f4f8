"""Language models, which are optional everywhere: what is asked of one, and a client of one kind of endpoint."""
