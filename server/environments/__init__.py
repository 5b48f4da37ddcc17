"""Environments that trainers and agents of others play: tasks, tools and rewards behind two wires."""
