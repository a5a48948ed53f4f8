"""The store on a PostgreSQL server: what only it needs, and the SQL that only it has."""
