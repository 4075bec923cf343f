"""Traces in formats of other people are called by their names, and our own never are."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.cli.main import main
from controller.documents.foreign_formats import COFLOW_TRACE, SNAPSHOT, recognised

PHILLY = """[
    {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": [{"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": []}],
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c"
    }
]
"""
HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
"""
PAI_HEADER = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
PAI_TASKS = "03c6,worker,1.0,Terminated,4550879.0,4551416.0,600.0,29.296875,50.0,MISC\n"
PAI_JOBS = "4b3f,8cb3,58540f,Failed,2550496.0,2550540.0\n"
GAVEL = (
    "ResNet-18\tcd /home/x/cifar10 && python3 main.py --data_dir=/data/cifar10\t--num_steps\t101792\t10\t1\n"
    "A3C\tcd /home/x/rl && python3 main.py --workers 4\t--max-steps\t41391\t38\t1\n"
)
GAVEL_LATER = "A3C (batch 4)\tpython3 main.py --workers 4\trl\t--max-steps\t0\t41391\t38.5\t1\n"
SINCRONIA = "150 2\n0 0 2 1 2 3 7 1.5 3 9 2\n1 20 1 1 1 0 1 4.0\n"

FORMATS = [
    ("Philly", PHILLY),
    ("Helios", HELIOS),
    ("PAI", PAI_HEADER + PAI_TASKS),
    ("PAI", PAI_TASKS),
    ("PAI", PAI_JOBS),
    ("Gavel", GAVEL),
    ("Gavel", GAVEL_LATER),
    ("Sincronia", SINCRONIA),
]


@pytest.mark.parametrize(("name", "text"), FORMATS)
def test_sim_and_order_call_it_by_its_name(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    assert main(["sim", "--trace", str(path), "--policy", "fair"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"sim: {path}:1: this looks like ")
    assert name in told
    assert "trainyard sim reads coflow traces: a line with two counts, PORTS COFLOWS, then" in told
    assert told.count("\n") == 1
    assert main(["order", str(path), "--policy", "fair"]) == 2
    told = capsys.readouterr().err
    assert name in told
    assert "trainyard order reads snapshots" in told


def test_our_own_two_are_told_from_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_text("# ports, coflows\n2 1\n1 0 1 0 1 1:1\n")
    assert main(["order", str(path), "--policy", "fair"]) == 2
    assert "a coflow trace (coflow benchmark)" in (told := capsys.readouterr().err)
    assert "trainyard sim --trace reads it" in told
    path.write_text('{"hosts": [], "jobs": []}')
    assert main(["sim", "--trace", str(path), "--policy", "fair"]) == 2
    assert "this looks like a snapshot of trainyard order" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "\n", "# only\n", "4 1\n1 0 1 0 1\n", "x", "[1, 2]", "a,b,c\n1,2,3\n", "a\tb\tc\td\te\tf\n", "{}"]
)
def test_what_is_nothing_that_is_known_has_no_name(text: str) -> None:
    assert recognised(text, COFLOW_TRACE) is None
    assert recognised(text, SNAPSHOT) is None


def test_the_first_line_of_a_large_trace_of_sincronia_is_enough() -> None:
    line = "0 0 9000 9000 9000 " + " ".join(f"{n} {n} 1.25" for n in range(9000))
    assert "Sincronia" in str(recognised(f"9000 1\n{line}\n", COFLOW_TRACE))
