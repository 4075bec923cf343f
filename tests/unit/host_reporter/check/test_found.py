"""The check of found jobs, with real processes, and its words for each case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from controller.wire.parts import PartSpec
from host_reporter.check import found
from host_reporter.check.verdict import Verdict
from host_reporter.formats.events import Described
from host_reporter.jobs.found.job import FoundJob
from host_reporter.jobs.found.silence import HELP
from host_reporter.jobs.job import JobProcesses
from host_reporter.options import DiscoverRule, Options
from host_reporter.readers.auto import auto_source
from host_reporter.readers.location import Location
from host_reporter.readers.whole import Whole
from tests.support.agent.started import started, unique

NANO = "".join(f"iter {i}: loss {4 - i / 100:.4f}, time {50 + i}.10ms, mfu 1.20%\n" for i in range(40))
RANKS = {"WORLD_SIZE": "4", "MASTER_ADDR": "h1", "MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "2"}
SPEC = PartSpec(launcher="torchrun", user="alice", world_size=4, ranks=2, is_first=True)
LOG = Location(Path("/proc/7/fd/1"), "/home/alice/train.log", None)
NOTHING = Whole(Described(), (), False, 0, 0, (), None)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    for name in ("jobs.d", "progress"):
        (tmp_path / name).mkdir()
    return Options(host="h1", jobs_dir=tmp_path / "jobs.d", progress_dir=tmp_path / "progress")


@pytest.fixture
def rooms() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def environment(run: str, rank: int) -> dict[str, str]:
    return RANKS | {"TORCHELASTIC_RUN_ID": run, "RANK": str(rank), "LOCAL_RANK": str(rank % 2)}


def begin(stack: ExitStack, folder: Path, text: str | None, rank: int = 0) -> str:
    """Start a rank whose output is a file with this text; None: it has none. Returns its job's name."""
    name = unique()
    if text is None:
        stack.enter_context(started(environment(name, rank)))
        return name
    out = stack.enter_context((folder / f"{name}.log").open("w"))
    out.write(text)
    out.flush()
    stack.enter_context(started(environment(name, rank), out=out))
    return name


def of(verdicts: list[Verdict], name: str) -> Verdict:
    (one,) = [each for each in verdicts if name in each.text]
    return one


def test_jobs_of_this_host_are_shown_with_their_output(options: Options, rooms: ExitStack, tmp_path: Path) -> None:
    known = begin(rooms, tmp_path, NANO)
    strange = begin(rooms, tmp_path, "secret=abc: the weather is fine today\n" * 120)
    silent = begin(rooms, tmp_path, None)
    elsewhere = begin(rooms, tmp_path, NANO, rank=2)
    empty = begin(rooms, tmp_path, "")
    seen = list(found.check(options))
    assert of(seen, known).state == "ok"
    assert (
        f"torchrun, 1 of 4 ranks here): its output is {tmp_path}/{known}.log, of the format nanogpt"
        in of(seen, known).text
    )
    assert of(seen, strange).state == "note"
    assert "which is not understood so far: no line so far matches a known format" in of(seen, strange).text
    assert of(seen, strange).help == f"trainyard parse {tmp_path}/{strange}.log shows its lines, and what would match"
    assert "no file has its output" in of(seen, silent).text
    assert of(seen, silent).help == HELP
    assert of(seen, elsewhere).text.endswith("rank 0 is on another host, where its progress is read")
    assert of(seen, empty).text.endswith("which is empty so far")
    assert "secret" not in str(seen), "a line may hold a secret"
    assert all(each.state != "missing" for each in seen), "what is wrong with a job is no fault of the host"


def test_a_job_with_a_job_file_is_none_of_the_found_ones(options: Options, rooms: ExitStack, tmp_path: Path) -> None:
    name = begin(rooms, tmp_path, NANO)
    assert any(name in each.text for each in found.check(options))
    (options.jobs_dir / "a.json").write_text(
        f'{{"id": "torchrun-{name}", "progress": {{"log": "{tmp_path}/{name}.log"}}}}'
    )
    assert not any(name in each.text for each in found.check(options))


def test_nothing_is_opened_that_the_agent_would_not_open(
    options: Options, rooms: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output of a rank that is not 0, and a file that a rank has open for reading alone, stay closed."""
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"step": 1, "loss": 2}\n')
    name = unique()
    rooms.enter_context(started(environment(name, 0), ("sh", "-c", f"exec sleep 600 3<{secret}")))
    begin(rooms, tmp_path, NANO, rank=3)
    read: list[Location] = []
    monkeypatch.setattr("host_reporter.found.auto_source", lambda place: read.append(place) or auto_source(place))
    seen = list(found.check(options))
    assert "no file has its output" in of(seen, name).text
    assert not [place for place in read if place.shown.startswith(str(tmp_path))]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(discover=()), "discover names no launcher"),
        (Options(nic="tls-one", interface="eth0", rate_bps=1e9), "TensorLights runs without a controller"),
    ],
)
def test_where_no_jobs_are_found_it_is_said_why(options: Options, said: str) -> None:
    (only,) = found.check(options)
    assert (only.state, said in only.text) == ("note", True)


def test_without_any_job_the_launchers_are_named(options: Options) -> None:
    rule = DiscoverRule(rule="ours", variable="NO_SUCH_VARIABLE_HERE")
    seen = list(found.check(options.model_copy(update={"discover": (rule,)})))
    assert (seen[-1].state, seen[-1].text) == ("ok", "no job runs here that one of these has started: ours")


@pytest.mark.parametrize(
    ("whole", "state", "said"),
    [
        (
            replace(NOTHING, matched=9, described=Described("loss", "min", preset="megatron-lm")),
            "ok",
            "of the format megatron-lm",
        ),
        (
            replace(NOTHING, matched=9, described=Described("loss", "min", preset="by name", is_guess=True)),
            "note",
            "read by a guess",
        ),
        (replace(NOTHING, unmatched=9), "note", "whose format is not recognised yet"),
        (
            replace(NOTHING, problem="/home/alice/train.log: it is a .gz"),
            "note",
            "which is not understood so far: it is a .gz",
        ),
        (None, "ok", "which the check has not read"),
    ],
)
def test_what_is_said_of_an_output(whole: Whole | None, state: str, said: str) -> None:
    job = FoundJob("alice.x", SPEC, JobProcesses(Path("/proc")), LOG, auto_source)
    told = found.verdict(job, whole)
    assert (told.state, said in told.text) == (state, True), told
    assert (told.help is None) == (state == "ok")
