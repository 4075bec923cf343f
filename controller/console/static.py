"""A static file as a server answers it: with an entity tag, compressed where the client takes that.

The files are read once. A request names one of them by a key of the table, and no path is made of what it says.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from controller.console import MEDIA_TYPES, find_files

CHARTS = "vendor/plotly.min.js"
"""The name under which the charts' library is served. It comes from the Python package of the same name."""
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
        "Vary": "Accept-Encoding",
    }
)
"""Go with every static file: a page may load scripts, styles and data only from where it comes from itself."""
OVER_TLS: Mapping[str, str] = MappingProxyType({"Cross-Origin-Opener-Policy": "same-origin"})
"""Go with a static file over TLS, too. Without TLS browsers ignore them, and complain."""
_REFUSES = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")


class Answer(NamedTuple):
    """An answer to a request for a file. ``headers`` have neither the type nor the length of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class StaticFile:
    """A file in memory. ``media_type`` is its Content-Type."""

    def __init__(self, content: bytes, media_type: str) -> None:
        self.content = content
        self.media_type = media_type
        self._hash = hashlib.sha256(content).hexdigest()[:32]
        self._compressed: bytes | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the compressed form is there already."""
        return self._compressed is not None

    def compressed(self) -> bytes:
        """Returns the content as gzip has it. The first call takes 0.3 s for 5 MB."""
        if self._compressed is None:
            self._compressed = gzip.compress(self.content, compresslevel=6, mtime=0)
        return self._compressed

    def answer(self, known: str | None, accepted: str | None) -> Answer:
        """Returns the answer to a request. ``known`` is its header If-None-Match, and ``accepted`` its Accept-Encoding.

        The status is 304 where the client has the file already.
        """
        packed = takes_gzip(accepted)
        tag = f'"{self._hash}-gzip"' if packed else f'"{self._hash}"'
        headers = {**HEADERS, "ETag": tag}
        if _names(known, tag):
            return Answer(HTTPStatus.NOT_MODIFIED, headers, b"")
        if packed:
            headers["Content-Encoding"] = "gzip"
        return Answer(HTTPStatus.OK, headers, self.compressed() if packed else self.content)


def takes_gzip(accepted: str | None) -> bool:
    """Returns whether a header Accept-Encoding allows gzip (RFC 9110, section 12.5.3)."""
    for part in (accepted or "").split(","):
        coding, _, weight = part.partition(";")
        if coding.strip().lower() == "gzip":
            return _REFUSES.fullmatch(weight) is None
    return False


def _names(known: str | None, tag: str) -> bool:
    """Returns whether a header If-None-Match names an entity tag, by the weak comparison (RFC 9110, section 13.1.2)."""
    tags = {part.strip().removeprefix("W/") for part in (known or "").split(",")}
    return bool(tags & {tag, "*"})


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Returns all static files by name. They are read at the first call. Without Plotly there is no ``CHARTS``."""
    files = find_files() | charts_file()
    return {name: StaticFile(path.read_bytes(), MEDIA_TYPES[path.suffix]) for name, path in files.items()}


def charts_file() -> dict[str, Path]:
    """Returns the path of the charts' library by ``CHARTS``; nothing without Plotly, which is not imported."""
    spec = find_spec("plotly")
    folders = spec.submodule_search_locations if spec is not None else None
    paths = [Path(folder) / "package_data" / "plotly.min.js" for folder in folders or ()]
    return {CHARTS: paths[0]} if paths and paths[0].is_file() else {}
