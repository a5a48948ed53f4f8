"""How the shipped models were trained: pinned data, questions made from facts, and the training itself."""
