"""The workflow IR: documents, references, checks, hashes and typed edits. Pure."""
