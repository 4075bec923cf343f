"""Ryu's manager, as ``ryu-manager controller.app`` and ``trainyard controller`` both run it.

eventlet patches the standard library before anything else is loaded. Ryu's own script does that in two steps, and at
the second step locks are in use that cannot be patched any more. The warnings that Ryu and eventlet give at import
are not printed, unless Python was started with warnings on. Ryu's other apps run as Ryu runs them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from controller.cli.extras import what_is_missing
from controller.process import early

OURS = "controller.app"


def main(arguments: Sequence[str] | None = None) -> Any:
    """Run Ryu's manager with ``arguments``, or with the command line's; returns what ``sys.exit`` takes."""
    given = sys.argv[1:] if arguments is None else arguments
    if OURS in given:
        early.end_at_once()
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
    try:
        import eventlet  # noqa: PLC0415 - its import warns

        eventlet.monkey_patch()
        from ryu.cmd import manager  # noqa: PLC0415 - nothing may be loaded before the line above
    except ModuleNotFoundError as error:
        sys.stderr.write(f"trainyard: {what_is_missing('controller', error)}\n")
        return 1
    return manager.main(None if arguments is None else list(arguments))


if __name__ == "__main__":
    sys.exit(main([OURS]))
