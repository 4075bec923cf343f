"""``python -m docs.generate.offline SITE``: fails where a page of the site would load something from another host."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_LOADS = {
    "img": "src",
    "script": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
}
"""Maps the elements that load something to the attribute that names it; links of a kind that loads are apart."""

_LOADING_LINKS = frozenset({"stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "icon", "modulepreload"})
_ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
_IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the element loads."""
        values = dict(attrs)
        if tag == "link" and not _LOADING_LINKS.isdisjoint((values.get("rel") or "").split()):
            self.loaded.append(values.get("href") or "")
        if tag in _LOADS:
            self.loaded.append(values.get(_LOADS[tag]) or "")
        self.loaded += [part.split()[0] for part in (values.get("srcset") or "").split(",") if part.split()]
        self.loaded += _IN_STYLES.findall(values.get("style") or "")


def foreign(site: Path) -> Iterator[str]:
    """Yields ``FILE: ADDRESS`` for whatever a page or a style sheet of the site loads from another host."""
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            page = _Page()
            page.feed(path.read_text())
            loaded = page.loaded
        elif path.suffix == ".css":
            loaded = _IN_STYLES.findall(path.read_text())
        else:
            continue
        yield from (f"{path.relative_to(site)}: {address}" for address in loaded if _ELSEWHERE.match(address))


def main(site: Path) -> int:
    """Returns the exit status: 1 where something is loaded from another host."""
    found = list(foreign(site))
    for line in found:
        sys.stderr.write(f"{line}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
