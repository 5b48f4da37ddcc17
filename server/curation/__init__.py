"""Curation: gather evidence for candidates, admit, publish, test and retire skills."""
