"""The settings in force. A reload replaces them while the controller runs."""

from __future__ import annotations

from collections.abc import Mapping

from controller.config.config import Config
from controller.model import Host


class CurrentSettings:
    """Holds the settings in force. Whoever uses a setting reads it here anew each time."""

    def __init__(self, config: Config) -> None:
        self.put(config)

    def put(self, config: Config) -> None:
        """Put other settings in force."""
        self.config = config
        self.hosts: Mapping[str, Host] = config.host_map()
        """The hosts by name. Nobody changes this mapping."""
