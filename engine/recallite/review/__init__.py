"""Looking at what is stored: audit, evaluation, the timeline, differences between versions, and the map."""
