"""Doors to a memory: operations declared once, and tools for models that are made from them."""
