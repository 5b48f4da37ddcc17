"""Evolution: from faults to typed edits to candidates, under execution evidence and a budget."""
