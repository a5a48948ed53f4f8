"""Training of the shipped models: pinned data, questions made from facts, and the training itself."""
