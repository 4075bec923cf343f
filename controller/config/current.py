"""The settings in force, and the hosts. A reload replaces the settings while the controller runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from controller.config.config import Config
from controller.endpoints.servers import Servers
from controller.model import Host

Enrolled = Callable[[Config], Mapping[str, Host]]
"""Returns the hosts that were approved, beside those of the settings."""


class CurrentSettings:
    """Holds the settings in force. Whoever uses a setting reads it here anew each time."""

    def __init__(self, config: Config, enrolled: Enrolled = lambda _config: {}) -> None:
        self._enrolled = enrolled
        self.put(config)

    def put(self, config: Config) -> None:
        """Put other settings in force."""
        self.config = config
        self.hosts: Mapping[str, Host] = self.hosts_of(config)
        """The interfaces of all hosts by name. Nobody changes this mapping."""
        self.servers = Servers(self.hosts)
        """The same by host."""

    def hosts_of(self, config: Config) -> dict[str, Host]:
        """Returns the interfaces by name that there are with other settings: of listed and of approved hosts."""
        return {**config.host_map(), **self._enrolled(config)}
