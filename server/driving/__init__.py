"""Driving: a model works on a task step by step, one call at a time, over live tools and skills."""
