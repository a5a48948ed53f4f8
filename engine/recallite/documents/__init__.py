"""The knowledge base: documents in many formats, read safely, cut into chunks and found again."""
