"""A folder of Markdown files as memory, and an index that is derived from it."""
