"""Measurements of Recallite: quality of retrieval, other libraries, other commits, and cases of a question each."""

import os

# A question is embedded each time it is asked.
os.environ["RECALLITE_QUERY_CACHE_SIZE"] = "0"
