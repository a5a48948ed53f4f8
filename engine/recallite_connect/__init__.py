"""Memories from and for other systems: agent frameworks, importers, and devices that share one memory."""
