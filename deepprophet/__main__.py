"""``python -m deepprophet``: the command ``trainyard predict`` where only the agent is installed."""

from __future__ import annotations

import argparse
import sys

from deepprophet.command import add_options, run


def main() -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m deepprophet")
    add_options(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
