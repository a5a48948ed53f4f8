"""The Model Context Protocol: memory for any agent host. `recallite mcp` starts the server."""
