"""Self-attributing: which steps of a run were good, and what the credit of each is."""
