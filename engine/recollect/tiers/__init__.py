"""Services over records for agents: four tiers of memory, sessions, experience, consolidation and bootstrap."""
