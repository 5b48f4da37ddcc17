"""Runs small untrusted functions: the boundary is the kernel's, never a reading of the code."""
