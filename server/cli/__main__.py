"""`python -m server.cli`: the command line where its script is not installed."""

import sys

from server.cli import main

sys.exit(main())
