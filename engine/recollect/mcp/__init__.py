"""The Model Context Protocol: memory for any agent host. `recollect mcp` starts the server."""
