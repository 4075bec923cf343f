"""A user that jobs are submitted by: one that every Debian has, and who owns nothing."""

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


def nobody() -> User:
    """Returns the user ``nobody``."""
    entry = pwd.getpwnam("nobody")
    return User(entry.pw_name, entry.pw_uid, entry.pw_gid)
