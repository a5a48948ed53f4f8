"""The machine below the engine: threads, files, locks, logs and traces."""
