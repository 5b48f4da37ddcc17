"""What is known: workflows, traces, skills, their life and their store."""
