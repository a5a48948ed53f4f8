"""Plugins of pytest that put our stores in the place of a framework's, for its own tests."""
