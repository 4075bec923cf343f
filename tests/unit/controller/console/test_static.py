"""The console's files in memory: which there are, and how they are answered."""

from __future__ import annotations

import gzip
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from controller.console import PAGE, find_files
from controller.console.static import CHARTS, HEADERS, StaticFile, charts_file, static_files, takes_gzip
from tests.support.paths import ROOT


def test_files_are_found_by_their_names_and_no_others(tmp_path: Path) -> None:
    for name in ("index.html", "js/pages/jobs.js", "js/main.js", "css/all.css", "icons/x.svg", "a.py", "js/secret.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.js").mkdir()
    found = find_files(tmp_path)
    assert list(found) == ["css/all.css", "icons/x.svg", "index.html", "js/main.js", "js/pages/jobs.js"]
    assert found["js/pages/jobs.js"] == tmp_path / "js" / "pages" / "jobs.js"


def test_the_package_has_a_page_and_scripts_and_all_its_files_have_a_type() -> None:
    files = static_files()
    assert b'data-source="live"' in files[PAGE].content
    assert any(name.endswith(".js") for name in files if name != CHARTS)
    assert all(file.media_type for file in files.values())


def test_all_files_are_shipped_in_the_package() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    patterns = settings["options.package_data"]["controller.console"].split()
    folder = ROOT / "controller" / "console"
    assert {path for pattern in patterns for path in folder.glob(pattern)} == set(find_files().values())


def test_the_charts_library_is_found_without_being_loaded() -> None:
    path = charts_file()[CHARTS]
    assert path.name == "plotly.min.js"
    assert b"plotly.js v" in path.read_bytes()[:200]
    assert "plotly" not in sys.modules


def test_without_plotly_there_is_no_charts_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert charts_file() == {}
    (tmp_path / "plotly").mkdir()
    (tmp_path / "plotly" / "__init__.py").touch()
    assert charts_file() == {}, "a Plotly without the file"


def test_a_file_is_sent_as_it_is_and_not_again() -> None:
    file = StaticFile(b"alert(1)", "text/javascript")
    first = file.answer(None, None)
    assert (first.status, first.body) == (200, b"alert(1)")
    assert first.headers.items() >= HEADERS.items()
    tag = first.headers["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = file.answer(known, None)
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
    for known in ('"other"', tag.strip('"'), ""):
        assert file.answer(known, None).status == 200
    assert StaticFile(b"alert(2)", "text/javascript").answer(tag, None).status == 200


def test_a_file_is_compressed_for_those_who_take_it() -> None:
    file = StaticFile(b"a" * 1000, "text/css")
    packed = file.answer(None, "br, gzip;q=0.8")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == file.content
    assert len(packed.body) < 100
    plain = file.answer(None, "br")
    assert "Content-Encoding" not in plain.headers
    assert plain.headers["ETag"] != packed.headers["ETag"]
    assert file.answer(packed.headers["ETag"], "gzip").status == 304
    assert file.answer(packed.headers["ETag"], None).status == 200, "the two forms are two things"


def test_what_is_known_is_not_compressed_for_nothing() -> None:
    file = StaticFile(b"a" * 1000, "text/css")
    file.answer("*", "gzip")
    assert not file.is_compressed
    file.answer(None, "gzip")
    assert file.is_compressed


@pytest.mark.parametrize(
    ("accepted", "is_taken"),
    [
        ("gzip", True),
        ("GZIP ; q=0.001", True),
        ("deflate, gzip;q=1.0", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("x-gzip", False),
        ("", False),
        (None, False),
    ],
)
def test_who_takes_gzip(accepted: str | None, is_taken: bool) -> None:
    assert takes_gzip(accepted) is is_taken
