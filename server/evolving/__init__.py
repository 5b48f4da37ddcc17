"""Task and agent evolving together: explore, solve, learn, in rounds under one budget."""
