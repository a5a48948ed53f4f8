"""An importer and a command for Recallite, from another package."""
