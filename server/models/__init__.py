"""Local models: their weights, the llama-server that runs them, and its process."""
