"""Experience: short lessons of earlier runs, what they are worth, and where they stand in a prompt."""
