"""``ryu-manager controller.app``, with the standard library made green before anything else is loaded.

Ryu's own script does that in two steps, and by the second one locks are in use that cannot be made green any more.
"""

from __future__ import annotations

import sys

import eventlet

eventlet.monkey_patch()

from ryu.cmd.manager import main  # noqa: E402 - nothing may be loaded before the line above

if __name__ == "__main__":
    sys.exit(main(["controller.app"]))
