"""From a run to a stored skill: compiled, judged by evidence, widened by its family, or saved on request."""
