"""Self-questioning: what an unknown tool server can do, tasks with checked solutions, its health."""
