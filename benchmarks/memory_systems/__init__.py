"""Memory systems that work without a language model, each in its own process, on the same turns and questions."""
