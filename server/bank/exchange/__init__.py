"""Skills as files: out of the bank, and files of others into it."""
