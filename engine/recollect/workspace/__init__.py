"""A folder of Markdown files as memory: the files are the truth, the index beside them is derived."""
