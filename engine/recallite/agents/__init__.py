"""Services for agents: four tiers of memory, sessions, experience, consolidation and bootstrap."""
