"""The command line: arguments to use cases, reports to text or JSON, errors to exit codes."""

from server.cli.app import main

__all__ = ["main"]
