"""``python -m gilscope``."""

import sys

from gilscope.entry import main

if __name__ == "__main__":
    sys.exit(main())
