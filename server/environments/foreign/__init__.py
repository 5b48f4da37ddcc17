"""Programs that run in interpreters of other packages; they import nothing of ours."""
