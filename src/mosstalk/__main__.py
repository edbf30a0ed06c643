"""`python -m mosstalk`: the command line."""

import sys

from mosstalk.cli import main

if __name__ == "__main__":
    sys.exit(main())
