"""Benchmarks: what the bank reaches on real tool servers, measured by one command (`run`)."""
