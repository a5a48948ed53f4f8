"""How Recallite's latency, memory, opening and writing grow with the number of records."""
