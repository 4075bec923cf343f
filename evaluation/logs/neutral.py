"""Paths, names and addresses of the machine that recorded become those of a machine that does not exist. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

HOST = "gpu01"
HOME = "/home/user"
ADDRESS = "10.0.0.1"

_TOOLSET = re.compile(r"/opt/rh/[\w.-]+/root(?=/)")
"""Where the compiler of a library's wheel was, on the machine that built it. Programs print it as a build setting."""


class Neutral:
    """Replaces texts of this machine, the longest first.

    ``paths`` maps a folder here to what stands in its place; ``host`` is this machine's name, and ``addresses`` are
    its IP addresses. Both are replaced where they stand as a word.
    """

    def __init__(self, paths: Mapping[str, str], host: str, addresses: Iterable[str]) -> None:
        self._paths = sorted(paths.items(), key=lambda pair: -len(pair[0]))
        self._words = [(host, HOST), *((address, ADDRESS) for address in addresses)]

    def text(self, text: str) -> str:
        """Returns the text without anything of this machine."""
        for path, neutral in self._paths:
            text = text.replace(path, neutral)
        for word, neutral in self._words:
            text = _as_word(word).sub(neutral, text)
        return _TOOLSET.sub("", text)

    def leaks(self, content: bytes) -> list[str]:
        """Returns what of this machine is in the content of a file that is no text."""
        text = content.decode("latin-1")
        paths = [path for path, _ in self._paths if path in text]
        return paths + [word for word, _ in self._words if _as_word(word).search(text)]


def _as_word(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-])")
