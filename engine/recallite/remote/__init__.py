"""Models served over HTTP: their addresses and clients. Used only where a remote model is configured."""
