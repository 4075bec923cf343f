"""What stands for a training in a recording: it says its process id, writes a line, and waits until it is released.

By itself, on the standard library, for whichever Python and user runs it: ``python3 rank.py FILE`` ends when FILE is
there. The line on stdout goes where a training's log goes; a launcher that labels lines says there which rank it was.
"""

import os
import sys
import time
from pathlib import Path


def main() -> None:
    """Say the process id once, and wait."""
    sys.stdout.write(f"here {os.getpid()}\n")
    sys.stdout.flush()
    deadline = time.monotonic() + 60
    while not Path(sys.argv[1]).exists() and time.monotonic() < deadline:
        time.sleep(0.02)


if __name__ == "__main__":
    main()
