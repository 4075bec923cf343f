"""Which job, rank and hosts an environment tells: torchrun's, Slurm's, both, neither, and nonsense."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire import NAME_PATTERN
from host_reporter import progress
from host_reporter.jobs.job_file import read_job_file
from host_reporter.training.job_template import main
from host_reporter.training.launch import NAME, find, job_name, own_host
from host_reporter.training.nodelist import MAX_HOSTS, expand

TORCH = {"TORCHELASTIC_RUN_ID": "my run", "RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
SLURM = {"SLURM_JOB_ID": "1234", "SLURM_PROCID": "5", "SLURM_NTASKS": "16", "SLURM_LOCALID": "1"}
NODES = {"SLURM_JOB_NODELIST": "gpu[01-03,7],login1.cluster"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("gpu1", ("gpu1",)),
        ("gpu1,gpu2", ("gpu1", "gpu2")),
        ("gpu[1-3]", ("gpu1", "gpu2", "gpu3")),
        ("gpu[08-10]", ("gpu08", "gpu09", "gpu10")),
        ("gpu[01-02,7]x", ("gpu01x", "gpu02x", "gpu7x")),
        ("r[0-1]n[1-2]", ("r0n1", "r0n2", "r1n1", "r1n2")),
        ("a-b[1-2],c.d[3]", ("a-b1", "a-b2", "c.d3")),
    ],
)
def test_slurms_lists(text: str, names: tuple[str, ...]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    "text", ["a[", "a]", "a[]", "a[1", "a[[1]]", "a[x]", "a[3-1]", "a[1-]", "a,,b", ",", "a b", "a[1-2-3]", "[" * 5000]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"bracket|name|number|backwards"):
        expand(text)


def test_more_hosts_than_a_job_may_have_are_not_written_out() -> None:
    assert len(expand(f"n[1-{MAX_HOSTS}]")) == MAX_HOSTS
    for text in (f"n[0-{MAX_HOSTS}]", "n[0-999999999999999999]", "n[0-9]" * 60):
        with pytest.raises(ValueError, match="more than"):
            expand(text)


@pytest.mark.parametrize(
    "text", ["[1]" * 3000, "a[1]" * 3000, "n" * 300, "n[1-2]" + "0" * 252, "n[1-4000]" + "m" * 250]
)
def test_no_name_has_thousands_of_parts(text: str) -> None:
    """Each part was a call within the one before: Python has no room for thousands of those."""
    with pytest.raises(ValueError, match="a host's name has at most 253 characters"):
        expand(text)
    assert find(SLURM | {"SLURM_JOB_NODELIST": text}).hosts == ()


def test_many_parts_within_bounds_are_one_name_each() -> None:
    assert expand("[1]" * 200) == ("1" * 200,)
    assert expand("a[0-1]" * 12)[-1] == "a1" * 12
    assert len(expand(",".join(f"n{number}" for number in range(MAX_HOSTS)))) == MAX_HOSTS
    with pytest.raises(ValueError, match=f"more than {MAX_HOSTS} nodes"):
        expand("n[1-4000],m[1-97]")


@given(st.text(alphabet="ab01[],-. ", max_size=40))
def test_no_text_does_anything_else(text: str) -> None:
    try:
        names = expand(text)
    except ValueError:
        return
    assert all(name and not set(name) & set("[], ") for name in names)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30), st.text(alphabet="abc-", min_size=1, max_size=8))
def test_a_list_says_what_was_put_into_it(numbers: list[int], prefix: str) -> None:
    text = f"{prefix}[{','.join(map(str, numbers))}]"
    assert expand(text) == tuple(f"{prefix}{number}" for number in numbers)


def test_torchrun() -> None:
    launch = find(TORCH)
    assert (launch.job, launch.rank, launch.world_size, launch.local_rank) == ("my-run", 3, 8, 1)
    assert launch.hosts == (), "torchrun does not tell them"
    assert find(TORCH | {"LOCAL_WORLD_SIZE": "8"}).hosts == (own_host(),), "all ranks are here"
    assert find(TORCH | {"TORCHELASTIC_RUN_ID": "none"}).job is None, "nobody gave it an id"
    assert not launch.may_restart
    assert find(TORCH | {"TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "2"}).may_restart
    assert not find(TORCH | {"TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "3"}).may_restart


def test_slurm() -> None:
    launch = find(SLURM | NODES)
    assert (launch.job, launch.rank, launch.world_size, launch.local_rank) == ("slurm-1234", 5, 16, 1)
    assert launch.hosts == ("gpu01", "gpu02", "gpu03", "gpu7", "login1")
    assert find(SLURM | NODES | {"SLURM_STEP_NODELIST": "gpu7"}).hosts == ("gpu7",), "the step has fewer"
    assert find({"SLURM_JOB_ID": "1234"}).rank == 0, "the batch script itself"
    assert find(SLURM | {"SLURM_JOB_NODELIST": "gpu["}).hosts == ()


def test_both_and_a_name_of_ones_own() -> None:
    both = find(SLURM | NODES | TORCH)
    assert (both.job, both.rank, both.world_size) == ("my-run", 3, 8)
    assert both.hosts[0] == "gpu01"
    assert find(SLURM | TORCH | {"TORCHELASTIC_RUN_ID": "1234"}).job == "slurm-1234", "the run is named by the job"
    assert find(SLURM | TORCH | {"TRAINYARD_JOB": "mine"}).job == "mine"


@pytest.mark.parametrize(
    ("environment", "job"),
    [
        ({"PBS_JOBID": "12.server", "PBS_JOBNAME": "resnet"}, "pbs-12.server"),
        ({"LSB_JOBID": "12", "LSB_JOBINDEX": "0"}, "lsf-12"),
        ({"LSB_JOBID": "12", "LSB_JOBINDEX": "3"}, "lsf-12-3"),
        ({"RAY_JOB_ID": "01000000"}, "ray-01000000"),
        ({"PMIX_NAMESPACE": "prterun-h1-77@1"}, "mpi-prterun-h1-77-1"),
        (
            TORCH | {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "gpu01", "MASTER_PORT": "29500"},
            "torchrun-gpu01-29500",
        ),
        (TORCH | {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}, "torchrun-here-1"),
        ({"MASTER_ADDR": "gpu01", "MASTER_PORT": "many"}, None),
    ],
)
def test_other_launchers_name_a_job_too(environment: dict[str, str], job: str | None) -> None:
    assert find(environment, "here").job == job


def test_neither() -> None:
    launch = find({})
    assert (launch.job, launch.rank, launch.world_size, launch.hosts) == (None, 0, 1, ())


@given(st.dictionaries(st.sampled_from([*TORCH, *SLURM, *NODES, "TRAINYARD_JOB"]), st.text(max_size=20)))
def test_nonsense_raises_nothing(environment: dict[str, str]) -> None:
    launch = find(environment)
    assert launch.rank >= 0
    assert launch.world_size >= 1
    if launch.job is not None:
        assert read_job_file(Path("/a.json"), json.dumps({"id": launch.job}), Path("/p")).id == launch.job


def test_names() -> None:
    assert f"^{NAME.pattern}$" == NAME_PATTERN, "one rule for the job template and the job file"
    assert job_name("a b/c") == "a-b-c"
    assert job_name("..x") == "x"
    assert job_name("é") is None
    assert job_name("x" * 100) == "x" * 63


@pytest.mark.parametrize(
    ("environment", "files"),
    [
        ({"TRAINYARD_JOB": "mine"}, ["mine.jsonl"]),
        (TORCH | {"RANK": "0"}, ["my-run.jsonl"]),
        (TORCH, []),
        (SLURM | {"SLURM_PROCID": "0"}, ["slurm-1234.jsonl"]),
        (SLURM, []),
        ({}, []),
    ],
)
def test_progress_without_a_name(tmp_path: Path, environment: dict[str, str], files: list[str]) -> None:
    script = (
        "from host_reporter import progress\n"
        "assert progress() is progress()\n"
        "progress().report(iteration=1, metric=0.5)\nprogress().stage('r0')\nprogress().end()\n"
    )
    own = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "TORCH", "RANK", "WORLD"))}
    own |= environment | {"TRAINYARD_PROGRESS_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=own, check=True, capture_output=True, text=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    assert done.stderr.count("TRAINYARD_JOB") == (0 if environment else 1), "said once, where there is no name at all"


def test_progress_never_raises() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("as the test wants")

    progress(Odd()).report(iteration=1)  # type: ignore[arg-type]  # what a script may hand over by mistake
    progress("x", directory=object()).report(iteration=1)  # type: ignore[arg-type]  # as above


def test_a_job_file_from_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (SLURM | {"SLURM_JOB_NODELIST": "gpu[1-4]", "SLURM_NTASKS": "8"}).items():
        monkeypatch.setenv(name, value)
    assert main(["--bytes", "8e6", "--iterations", "100"]) == 0
    job = read_job_file(Path("/a.json"), capsys.readouterr().out, Path("/p"))
    assert job.id == "slurm-1234"
    assert job.spec is not None
    assert [task.host for task in job.spec.tasks] == ["gpu1", "gpu2", "gpu3", "gpu4"]
    assert [(d.src, d.dst, d.bytes) for d in job.spec.demand][-1] == ("gpu4", "gpu1", 2 * 7 / 8 * 8e6)
    assert job.spec.iterations == 100
    assert job.spec.target is None
    assert main(["--job", "x", "--hosts", "h1", "--target", "0.92"]) == 0
    alone = read_job_file(Path("/a.json"), capsys.readouterr().out, Path("/p"))
    assert alone.spec is not None
    assert alone.spec.demand == ()
    assert alone.spec.target == 0.92
    assert main(["--job", "x", "--hosts", "h1,h2,h1", "--bytes", "1e6"]) == 0
    twice = read_job_file(Path("/a.json"), capsys.readouterr().out, Path("/p"))
    assert twice.spec is not None
    assert [task.host for task in twice.spec.tasks] == ["h1", "h2"], "no host sends to itself"


def test_a_name_that_no_job_file_can_have_is_refused_in_slurms_list_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (SLURM | {"SLURM_JOB_NODELIST": "gpu1,gpu+2"}).items():
        monkeypatch.setenv(name, value)
    assert main([]) == 2
    assert "the nodes of Slurm's job: 'gpu+2' is no name of a host" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "arguments", "family"),
    [
        ({}, [], None),
        ({"SLURM_JOB_NAME": "resnet50/cifar10"}, [], "resnet50/cifar10"),
        ({"SLURM_JOB_NAME": "resnet50"}, ["--family", "mine"], "mine"),
        ({"SLURM_JOB_NAME": "resnet50"}, ["--family", ""], ""),
        ({"SLURM_JOB_NAME": "wrap"}, [], None),
        ({"SLURM_JOB_NAME": "wrap"} | TORCH, [], "my run"),
        ({"SLURM_JOB_NAME": "resnet50"} | TORCH, [], "resnet50"),
        ({"SLURM_JOB_NAME": "job-12", "TORCHELASTIC_RUN_ID": "none"}, [], None),
    ],
)
def test_the_launchers_name_is_the_family(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: dict[str, str],
    arguments: list[str],
    family: str | None,
) -> None:
    for name in ("SLURM_JOB_NAME", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["--job", "x", "--hosts", "h1", *arguments]) == 0
    job = read_job_file(Path("/a.json"), capsys.readouterr().out, Path("/p"))
    assert job.spec is not None
    assert job.spec.family == family


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--job"),
        (["--job", "x", "--hosts", "a", "--family", "a\nb"], "--family: it must have at most 127 characters"),
        (["--job", "x"], "--hosts"),
        (["--job", "x", "--hosts", "a["], "--hosts: "),
        (["--job", "x", "--hosts", "a,gpu/1"], "--hosts: 'gpu/1' is no name of a host in a job file"),
        (["--job", "x", "--hosts=-rf"], "--hosts: '-rf' is no name of a host"),
        (["--job", "x", "--hosts", "h" * 64], "is no name of a host in a job file, which has 1 to 63 letters"),
        (["--job", "x", "--hosts", "[1]" * 3000], "--hosts: "),
        (["--job", "x", "--hosts", "a", "--bytes", "nan"], "--bytes"),
        (["--job", "x", "--hosts", "a", "--iterations", "0"], "--iterations"),
        (["--job", "x", "--hosts", "a", "--target", "nan"], "--target"),
    ],
)
def test_what_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    for name in [*TORCH, *SLURM, *NODES, "TRAINYARD_JOB", "SLURM_STEP_NODELIST"]:
        monkeypatch.delenv(name, raising=False)
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert words in output.err
    assert len(output.err.splitlines()) == 1
