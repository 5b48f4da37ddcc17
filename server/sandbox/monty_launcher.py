"""Becomes the Monty worker named first on the command line, confined to its own binary and libraries.

Run by path in a clean interpreter. The process image is replaced, so nothing of Python is left in it.
"""

from __future__ import annotations

import os
import runpy
import sys

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_MEMORY_BYTES = 2 << 30
"""Address space; what code may allocate is bounded by the engine."""

_confinement = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "confinement.py"))
_worker = sys.argv[1]
_confinement["confine_files"](executable=(_worker, *_LIBRARIES))
_confinement["confine_resources"](_MEMORY_BYTES)
os.execve(_worker, sys.argv[1:], {})
