"""Doors to a memory: the command line, tools for models, MCP, HTTP with its page, and the client."""
