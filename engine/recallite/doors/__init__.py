"""Doors to a memory: operations declared once, the command line and tools for models that are made from them."""
