"""One task from its words to a verified answer: routed, planned, run, repaired."""
