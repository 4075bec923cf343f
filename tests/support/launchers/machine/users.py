"""The users that jobs are started by."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class User:
    name: str
    uid: int
    gid: int

    @property
    def options(self) -> dict[str, Any]:
        """What ``subprocess`` needs to start a process of this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def folder(self, path: Path) -> Path:
        """Make a folder that is this user's."""
        path.mkdir(parents=True)
        path.chmod(0o755)
        os.chown(path, self.uid, self.gid)
        return path


def somebody() -> User:
    """Returns a user whom every Debian has, and who owns nothing. The agent takes nobody for no user."""
    entry = pwd.getpwnam("games")
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid)


def root() -> User:
    """Returns the user ``root``, who may enter the folders of the checkout wherever it lies."""
    return User("root", 0, 0)
