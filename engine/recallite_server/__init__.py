"""Ways to a memory from outside its process: HTTP, MCP, hooks of coding agents, and the process that they share."""
