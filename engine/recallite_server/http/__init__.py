"""The HTTP API: memories for any language, and the page that shows them. `recallite serve` starts it."""
