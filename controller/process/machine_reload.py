"""Reloads that no request has asked for: by a signal, or because a file has changed. They are in the audit, too."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any, Literal

from controller.access.audit.facts import differing, plain
from controller.documents.mapping_file import ConfigError
from controller.reload.reloader import NoFileError, Reloader

LOG = logging.getLogger("trainyard.reload")
ROLE = "machine"
"""Who may write the controller's files and send it signals. The machine asks for the proof, not the controller."""


class MachineReload:
    """Has ``reloader`` put the settings in force, and hands a record of that to ``add``."""

    def __init__(self, reloader: Reloader, add: Callable[[Mapping[str, Any]], None]) -> None:
        self._reloader = reloader
        self._add = add

    def run(self, who: Literal["signal", "file"]) -> None:
        """Reload. A reload that is refused is logged, and changes nothing."""
        content = {"who": who, "role": ROLE, "address": socket.gethostname(), "action": "reload"}
        try:
            outcome = self._reloader.run({"signal": "SIGHUP", "file": "a changed file"}[who])
        except NoFileError as error:
            LOG.warning("%s is ignored: %s", who, error)
        except ConfigError as error:
            self._add(content | {"outcome": "refused", "detail": plain(str(error))})
        else:
            if outcome.changed:
                before, after = differing(*outcome.sides)
                self._add(content | {"outcome": "done", "before": before, "after": after})
