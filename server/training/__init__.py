"""Training data out of what a bank has seen: episodes, credit, formats; and a trainer in a process apart."""
