"""Looking at what is stored: `memory.review`, and the audit."""
