"""Documents: what an index costs beside its embeddings, many small files, searches of a workspace, PDF."""
