"""Pictures as files: PNG for a folder, SVG for a page. The same results give the same bytes."""

from __future__ import annotations

import io
import re

import matplotlib as mpl

from simulator.reports.figures import INK, figures
from simulator.reports.results import Results


def pictures(results: Results) -> dict[str, bytes]:
    """PNG files by file name."""
    files = {}
    for name, figure in figures(results).items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
        files[f"{file_name(name)}.png"] = buffer.getvalue()
    return files


def drawings(results: Results) -> dict[str, str]:
    """SVG elements by name, to stand in a page: its text colour is theirs, and the ids of no two are the same."""
    elements = {}
    for name, figure in figures(results).items():
        buffer = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "trainyard"}):
            figure.patch.set_alpha(0.0)
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        elements[name] = _inline(buffer.getvalue(), file_name(name))
    return elements


def file_name(name: str) -> str:
    """A name that any file system takes."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)


def _inline(svg: str, prefix: str) -> str:
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{prefix}-", svg)
    # Width and height in points would not shrink with the page; the viewBox stays.
    for side in ("width", "height"):
        svg = re.sub(rf'(<svg[^>]*?) {side}="[^"]*"', r"\1", svg, count=1)
    return svg
