"""What the engine asks of the machine: threads, files, locks, and where it logs and traces."""
