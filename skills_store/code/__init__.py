"""Python functions as bodies of skills, read as text and never run here: signature, lint, tests."""
