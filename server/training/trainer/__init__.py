"""The trainer: a program of its own, in a Python that has torch and TRL, which knows nothing of the rest.

It is started by `server.training.launching`, reads one JSON job and prints lines of JSON. Imports inside are
relative, since the Python it runs in may have no skillbank.
"""
