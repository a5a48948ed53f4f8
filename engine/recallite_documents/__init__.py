"""Reads documents: PDF, Word, HTML, Markdown and text, from files and from the web, each in a process with limits."""
