"""Growth of latency, memory, opening and writing with the number of records."""
