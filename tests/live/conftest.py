"""Test modules of this folder share `real_servers`, `installing` and `recording`; it is no package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
