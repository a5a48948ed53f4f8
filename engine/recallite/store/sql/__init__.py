"""The repositories with the SQL that SQLite and PostgreSQL share; what differs is in the rooms of the two."""
