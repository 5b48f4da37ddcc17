"""Compilation: from a verified run to a candidate skill."""
