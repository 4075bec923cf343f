"""The console's static files: HTML, CSS, JavaScript and pictures, and what a server says with them.

The controller serves them (``GET /``), and ``trainyard console`` does beside recorded runs. There is no build step: the
files are sent as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

PAGE = "index.html"
"""The name of the page that ``GET /`` answers."""
MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
    }
)
"""Only files with these suffixes are sent."""


def find_files(folder: Path = Path(__file__).parent) -> dict[str, Path]:
    """Returns the console's files by their names below ``folder``, with slashes, in alphabetical order."""
    found = (path for path in sorted(folder.rglob("*")) if path.suffix in MEDIA_TYPES and path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in found}
