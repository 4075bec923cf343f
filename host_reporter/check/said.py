"""Keeps what the agent would log, so that a check can show it."""

from __future__ import annotations

import logging

from host_reporter.notices import Notices


class Said(Notices):
    """The messages by their keys, in the order in which they came."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger("host_reporter.check"))
        self.by_key: dict[str, str] = {}

    def say(self, key: str, message: str, level: int = logging.WARNING) -> None:  # noqa: ARG002 - as the base has it
        """Keep a message in the place of the last one of ``key``."""
        self.by_key[key] = message

    @property
    def messages(self) -> list[str]:
        """What was said."""
        return list(self.by_key.values())
