"""The repositories whose SQL SQLite and PostgreSQL share; what differs is in the rooms of the two."""
