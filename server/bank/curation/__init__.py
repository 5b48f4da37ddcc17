"""Skills in use: watched, audited, slowed ones noticed, the step that is due taken, the failing mended."""
