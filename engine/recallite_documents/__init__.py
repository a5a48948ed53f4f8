"""Ingests documents: finds files and URLs, reads PDF, Word, HTML, Markdown and text within limits, and cuts them."""
