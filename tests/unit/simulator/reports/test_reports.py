"""What people see: tables, pictures, the page; and files that are there whole or not at all."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.container import BarContainer
from rich.console import Console

from simulator.reports import files, html, plots
from simulator.reports.figures import figures
from simulator.reports.measures import Measures
from simulator.reports.results import Results
from simulator.reports.summary import versus
from simulator.reports.table import percent, tables
from simulator.reports.timeline import OTHERS, STEPS, timeline
from tests.support.simulator.sim_runs import coflow_run, results, training_run

ROWS = np.array([[0.0, 2.0, 0.0, 8e6], [1.0, 4.0, 1.0, 4e6], [3.0, 4.0, 0.0, 2e6]])


def two_seeds() -> Results:
    line = timeline("a egress", 8e6, ROWS, ["j", "k"])

    def runs(policy: str, factor: float) -> list[Measures]:
        first = replace(training_run(policy, 2.0 * factor), timeline=line)
        return [first, training_run(policy, 4.1 * factor)]

    return results({0.5: {"fair": runs("fair", 1.0), "p<q>": runs("p<q>", 0.7)}}, seeds=(1, 2))


def printed(shown: Results) -> str:
    console = Console(file=StringIO(), width=80)
    console.print(*tables(shown))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_tables_fit_a_terminal_and_say_all() -> None:
    text = printed(two_seeds())
    assert "…" not in text
    for part in ("JCT (s)", "t90 (s)", "censored", "saved to fair", "+30.0 ± 0.0 %", "makespan", "p<q>", "load 0.5"):
        assert part in text
    assert "SCT" not in text


def test_what_a_run_took_is_processor_time_for_others_run_beside_it() -> None:
    shown = two_seeds()
    for told in (printed(shown), html.page(shown)):
        assert "CPU (s)" in told
        assert "wall (s)" not in told
        assert "0.50" in told, "a quarter of a second for each of two seeds, half a second each by the wall's clock"


def test_a_table_of_one_policy_compares_nothing() -> None:
    text = printed(results({None: {"fifo": [coflow_run("fifo", {"1": 1.5})]}}))
    assert "saved" not in text
    assert "±" not in text
    assert "CCT" in text


def test_an_interval_that_is_skewed_is_shown_by_its_two_ends() -> None:
    # One long coflow makes nearly all of the saving: a resample may have none of it.
    before = {str(number): 1.5 for number in range(9)} | {"long": 40.5}
    runs = {"fair": [coflow_run("fair", before)], "p": [coflow_run("p", {**before, "long": 10.5})]}
    one = versus(runs["fair"], runs["p"])["cct_seconds"]
    assert one.interval is not None
    low, high = (100 * end for end in one.interval)
    assert (low, 100 * one.reduction) == pytest.approx((0.0, 61.2), abs=0.1)
    assert 65 < high < 80
    shown = results({None: runs})
    for text in (printed(shown), html.page(shown)):
        assert f"+61.2 % (0.0 to {high:.1f})" in text
    assert "saved to fair (coflows)" in printed(shown)
    assert "±" not in printed(shown)
    (bar,) = (found for found in figures(shown)["saved"].axes[0].containers if isinstance(found, BarContainer))
    assert bar.errorbar is not None
    ((_, bottom), (_, top)) = bar.errorbar.lines[2][0].get_segments()[0]
    assert (bottom, top) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("share", "bounds", "text"),
    [
        (0.3, None, "+30.0 %"),
        (0.3, (0.25, 0.35), "+30.0 ± 5.0 %"),
        (-4.978, (-7.351, -3.532), "-497.8 % (-735 to -353)"),
        (0.1, (0.12, 0.2), "+10.0 % (12.0 to 20.0)"),
    ],
)
def test_a_saving_in_words(share: float, bounds: tuple[float, float] | None, text: str) -> None:
    assert percent(share, bounds) == text


def test_pictures_are_png_files_of_every_kind() -> None:
    made = plots.pictures(two_seeds())
    assert set(made) == {
        *(f"cdf-{name}.png" for name in ("cct", "jct", "t90", "t95", "iteration", "slowdown", "link-use")), "means.png",
        "saved.png", "timeline-fair.png", "timeline-p-q-.png",
    }  # fmt: skip
    assert all(content.startswith(b"\x89PNG") for content in made.values())
    assert plots.pictures(two_seeds()) == made, "the same results give the same bytes"


def test_several_loads_have_pictures_of_their_own_and_one_over_loads() -> None:
    both = results({0.3: {"fair": [training_run("fair", 1.0)]}, 0.7: {"fair": [training_run("fair", 2.0)]}})
    assert {"loads.png", "cdf-jct-load-0.3.png", "means-load-0.7.png"} <= set(plots.pictures(both))


class Page(HTMLParser):
    """Collects what a page refers to, and its ids."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name in {"src", "href", "xlink:href", "data", "action", "srcset"}:
                self.references.append(value or "")
            if name == "id":
                self.ids.append(value or "")


def test_the_page_fetches_nothing_and_escapes_names() -> None:
    text = html.page(two_seeds())
    page = Page()
    page.feed(text)
    assert all(reference.startswith("#") for reference in page.references)
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not re.search(r"@import|url\((?!#)", text)
    assert "prefers-color-scheme: dark" in text
    assert "p<q>" not in text
    assert "p&lt;q&gt;" in text
    assert "trainyard sim --policy &#x27;a&lt;b&gt;&#x27;" in text
    assert "<dt>Seeds</dt><dd>1, 2</dd>" in text
    assert len(page.ids) == len(set(page.ids)), "drawings must not share clip paths"
    assert {reference[1:] for reference in page.references} <= set(page.ids)


def test_drawings_take_the_colour_of_the_text_and_are_well_formed() -> None:
    drawn = plots.drawings(two_seeds())
    for svg in drawn.values():
        ElementTree.fromstring(svg)
        assert "currentColor" in svg
        assert "#010203" not in svg
    assert drawn == plots.drawings(two_seeds())


def test_a_timeline_keeps_every_byte() -> None:
    found = timeline("a egress", 8e6, ROWS, ["j", "k"])
    assert found.jobs == ("j", "k")
    step = np.diff(found.edges)[0]
    assert found.rates_bps.shape == (2, STEPS)
    assert (found.rates_bps * step).sum(axis=1) == pytest.approx([18e6, 12e6])
    assert found.rates_bps[0, 0] == pytest.approx(8e6)
    assert found.rates_bps[1, 0] == pytest.approx(0.0, abs=1e-3)


def test_a_timeline_names_the_biggest_and_gathers_the_rest() -> None:
    rows = np.array([[float(i), i + 1.0, float(i), 1e6 * (i + 1)] for i in range(12)])
    found = timeline("a egress", 1e9, rows, [f"j{i}" for i in range(12)])
    assert found.jobs == (*(f"j{i}" for i in range(3, 12)), OTHERS)
    assert (found.rates_bps * np.diff(found.edges)).sum() == pytest.approx(78e6)


def test_a_link_that_nobody_used_has_an_empty_timeline() -> None:
    assert timeline("a egress", 1e9, np.zeros((0, 4)), []).jobs == ()


def test_files_are_written_whole_with_the_usual_mode(tmp_path: Path) -> None:
    deep = tmp_path / "deep" / "plots"
    files.write_all({tmp_path / "page.html": b"x", deep / "a.png": b"1", deep / "b.png": b"2"})
    assert (tmp_path / "page.html").stat().st_mode & 0o600 == 0o600
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"page.html", "a.png", "b.png"}


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"exists|directory"):
        files.write_all({tmp_path / "a.png": b"1", tmp_path / "file" / "b.png": b"2"})
    with pytest.raises(TypeError):
        files.write_all({tmp_path / "a.png": b"1", tmp_path / "b.png": None})  # type: ignore[dict-item]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
