"""From a file's bytes to its text: what is read, and what is called by its name; the same for every reader of files."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import logging
import logging.handlers
import lzma
import os
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.cli.main import main
from controller.cli.ordering.snapshot_file import SnapshotError, read_snapshot
from controller.config.config import ConfigError, load_config
from controller.documents import text_file
from controller.documents.plain_text import PlainTextError, decode
from deepprophet.errors import InputError as ProphetInputError
from deepprophet.predict import network
from host_reporter.jobs.job_file import JobFileError
from host_reporter.jobs.jobs_dir import JobsDirectory
from host_reporter.notices import Notices
from simulator import graph_file
from simulator.errors import InputError
from simulator.workloads import coflow_trace
from topologies.experiments.experiment_file import read_experiment

MOST = 2**20
MARK = b"\xef\xbb\xbf"


def packed(raw: bytes, level: int = 9) -> bytes:
    return gzip.compress(raw, level, mtime=0)


def taken(raw: bytes) -> str:
    return decode(raw, most_bytes=MOST)


@pytest.mark.parametrize("text", ["", "a", "a\nb", "a\r\nb\r\n", "a\r", "é\n\U0001f600", "\x1f"])
def test_text_is_read_with_a_mark_and_gzipped(text: str) -> None:
    raw = text.encode()
    for given_bytes in (raw, MARK + raw, packed(raw), packed(MARK + raw), packed(raw) + b"\0" * 9):
        assert taken(given_bytes) == text


def test_members_of_a_gzip_file_follow_each_other() -> None:
    assert taken(packed(b"one\n") + packed(b"two\n")) == "one\ntwo\n"


def zipped() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a"), "b")
    return made.getvalue()


def tarred() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return made.getvalue()


NO_TEXTS: list[tuple[bytes, int | None, str]] = [
    ("a\nb".encode("utf-16"), None, "is UTF-16 text; save it as UTF-8 (iconv -f UTF-16"),
    ("a\nb".encode("utf-16-le"), None, "is UTF-16 text"),
    ("a\nb".encode("utf-16-be"), None, "is UTF-16 text"),
    ("a\nb".encode("utf-32"), None, "is UTF-32 text"),
    ("a\nb".encode("utf-32-le"), None, "is UTF-32 text"),
    ("a\nb".encode("utf-32-be"), None, "is UTF-32 text"),
    (packed("a\nb".encode("utf-16")), None, "is UTF-16 text"),
    (b"a\nb\xff", 2, "byte 4 of the file (0xff) is no UTF-8 text"),
    (MARK + b"a\nb\xff", 2, "byte 7 of the file (0xff) is no UTF-8 text"),
    (b"a\nb\n\0c", 3, "byte 5 of the file is NUL"),
    (b"a\rb\rc\r", None, "its lines end with a carriage return alone, as on old Macs"),
    (b"a\r\nb\rc\n", 2, "a carriage return stands alone in this line"),
    (packed(packed(b"a")), None, "is gzipped twice; unpack it once"),
    (packed(b"a" * 999)[:-9], None, "is gzipped, and ends too soon; the file is not whole"),
    (packed(b"abc")[:-8] + b"x" * 8, None, "is gzipped, and damaged: incorrect data check"),
    (b"\x1f\x8b junk that is none", None, "is gzipped, and damaged: "),
    (packed(b"abc") + b"more", None, "something else follows the gzipped data"),
    (zipped(), None, "is a zip archive; unpack it first (unzip)"),
    (bz2.compress(b"a"), None, "is compressed by bzip2; unpack it first (bunzip2)"),
    (lzma.compress(b"a"), None, "is compressed by xz; unpack it first (unxz)"),
    (b"\x28\xb5\x2f\xfd\x04", None, "is compressed by zstd; unpack it first (unzstd)"),
    (tarred(), None, "is a tar archive; unpack it first (tar -xf), and give one of its files"),
    (b"a" * (MOST + 1), None, f"is larger than {MOST} bytes"),
    (packed(b"a" * (MOST + 1)), None, f"is gzipped, and larger than {MOST} bytes once unpacked"),
    (packed(b"a" * MOST) + packed(b"a"), None, f"larger than {MOST} bytes once unpacked"),
]


@pytest.mark.parametrize(("raw", "line", "words"), NO_TEXTS, ids=[words for _, _, words in NO_TEXTS])
def test_what_is_no_text_is_called_by_its_name(raw: bytes, line: int | None, words: str) -> None:
    with pytest.raises(PlainTextError) as refused:
        taken(raw)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.line == line


def test_the_bound_itself_is_read() -> None:
    assert taken(b"a" * MOST) == taken(packed(b"a" * MOST)) == "a" * MOST


@given(st.binary(max_size=300) | st.binary(max_size=99).map(packed) | st.binary(max_size=99).map(b"\x1f\x8b".__add__))
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    try:
        text = taken(raw)
    except PlainTextError as error:
        assert str(error)
    else:
        assert "\0" not in text
        assert not text.startswith("\ufeff") or raw.count(MARK)


SNAPSHOT = '{"hosts": [{"name": "a"}, {"name": "b"}],\n "jobs": []}\n'
TRACE = "2 1\n1 0 1 0 1 1:1\n"
NETWORK = "hosts:\n  - {name: a}\n"
EXPERIMENT = (
    "name: x\njobs:\n- {id: a, arrival: 0, architecture: ps, hosts: [h1, h2], port: 2000, model: m, model_bytes: 1,\n"
    "  compute_seconds: 0, iterations: 1, curve: c}\n"
)


def job_file(path: Path) -> object:
    """As the agent reads job files, of a folder of its own."""
    folder = path.parent / "jobs.d"
    folder.mkdir(exist_ok=True)
    (folder / "a.yaml").write_bytes(path.read_bytes())
    log = logging.Logger("job files")
    log.addHandler(logging.handlers.BufferingHandler(99))
    found = list(JobsDirectory(folder, folder, Notices(log)).scan(0.0, 1e12))
    (handler,) = log.handlers
    assert isinstance(handler, logging.handlers.BufferingHandler)
    if handler.buffer:
        raise JobFileError(handler.buffer[0].getMessage())
    return found


READERS: dict[str, tuple[str, Callable[[Path], object], type[Exception]]] = {
    "snapshot": (SNAPSHOT, read_snapshot, SnapshotError),
    "trace": (TRACE, lambda path: coflow_trace.parse(coflow_trace.read(path), "t"), InputError),
    "graph": (
        'graph [\n node [ id 0 label "a" ]\n]\n',
        lambda path: graph_file.parse(graph_file.read(path)),
        InputError,
    ),
    "settings": ("policy: fair\nclasses: 3\n", load_config, ConfigError),
    "experiment": (EXPERIMENT, read_experiment, ConfigError),
    "job file": ("id: a\nspec: {}\n", job_file, JobFileError),
    "network": (NETWORK, network.read, ProphetInputError),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_takes_and_refuses_the_same(reader: str, tmp_path: Path) -> None:
    text, read, refusal = READERS[reader]
    raw = text.encode()
    path = tmp_path / ("x.gml" if reader == "graph" else "x.yaml")
    for good in (raw, MARK + raw, packed(raw), raw.replace(b"\n", b"\r\n")):
        path.write_bytes(good)
        read(path)
    for bad, words in (
        (text.encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        (raw.replace(b"\n", b"\r"), "its lines end with a carriage return alone, as on old Macs"),
        (raw + b"\xff", "no UTF-8 text; save the file as UTF-8"),
        (raw + b"\0", "of the file is NUL; a text has none"),
        (packed(raw)[:-5], "is gzipped, and ends too soon; the file is not whole"),
        (packed(b"\n" * (2**30 + 1), 1) if reader == "trace" else packed(b"#" * 2**25), "once unpacked")
        if reader in ("settings", "job file", "network", "experiment")
        else (bz2.compress(raw), "is compressed by bzip2; unpack it first"),
    ):  # fmt: skip
        path.write_bytes(bad)
        with pytest.raises(refusal, match=r"(x|a)\.\w+(:\d+)?: ") as refused:
            read(path)
        assert words in str(refused.value)


def test_a_graph_may_be_gzipped_under_a_gzipped_name(tmp_path: Path) -> None:
    path = tmp_path / "x.gml.gz"
    path.write_bytes(packed(READERS["graph"][0].encode()))
    assert list(graph_file.parse(graph_file.read(path))) == ["a"]


def test_files_that_cannot_be_read_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path, words in (
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "none", "cannot be read: No such file or directory"),
        (tmp_path / "loop", "cannot be read: Too many levels of symbolic links"),
        (Path("a\0b"), "cannot be read: embedded null byte"),
        (Path("/dev/zero"), "is larger than 1000 bytes"),
    ):
        with pytest.raises(text_file.FileError) as refused:
            text_file.read(path, most_bytes=1000)
        assert str(refused.value) == f"{path}: {words}"
    with pytest.raises(text_file.FileError, match="null:1: is empty; it must hold a word"):
        text_file.read(Path(os.devnull), holds="a word")
    assert text_file.read(Path(os.devnull)) == ""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(text_file.FileError, match="<stdin>: cannot be read: it is closed"):
        text_file.read(text_file.STDIN)


def test_a_trace_and_a_snapshot_come_from_the_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, command in (
        (SNAPSHOT, ["order", "-", "--policy", "fifo"]),
        (TRACE, ["sim", "--trace", "-", "--policy", "fifo"]),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed(text.encode()))))
        assert main([*command, "--json", *(["--processes", "1"] if command[0] == "sim" else [])]) == 0
        assert json.loads(capsys.readouterr().out)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-16"))))
        assert main([*command, "--json"]) == 2
        assert "<stdin>: is UTF-16 text" in capsys.readouterr().err


def test_a_very_long_line_is_told_in_few_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.txt"
    path.write_text("2 1\n" + "9" * 5_000_000 + " x\n")
    assert main(["sim", "--trace", str(path), "--policy", "fifo"]) == 2
    assert len(capsys.readouterr().err) < 300
