"""Self-navigating: lessons written from runs, recalled for tasks and repairs, and kept while they help."""
