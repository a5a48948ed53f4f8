"""Measurements of Recallite: quality of retrieval, other libraries, other commits, and cases of a question each."""
