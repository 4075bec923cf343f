"""Workloads and limits that cannot be are refused in words."""

from __future__ import annotations

import pytest

from controller.model import Host, Port
from controller.policies.fifo import Fifo
from simulator.engine import Limits, simulate
from simulator.errors import InputError
from simulator.jobs import Compute, SimJob, Workload
from tests.support.simulator.small_cases import OUT, coflow, run


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (coflow("1", ("a", "b", -1)), "job 1: -125000000.0 bytes from a to b"),
        (coflow("1", ("a", "z", 1)), "host z"),
        (coflow("1", ("a", "b", float("nan"))), "nan bytes"),
        (coflow("1", ("a", "b", 1), arrival=-1.0), "arrival"),
        (coflow("1", ("a", "b", 1), iterations=0), "iterations"),
        (coflow("1", ("a", "b", 1), staleness=-1), "staleness"),
        (coflow("1", ("a", "b", 1), weight=0.0), "weight"),
        (coflow("1", ("a", "b", 1), after=("2",)), "waits for 2, but there is no such job"),
        (coflow("1", ("a", "b", 1), after=("1",)), "waits for 1"),
        (coflow("1", ("a", "b", 1), curve=(0.1, 0.2)), "curve"),
        (SimJob(id="1", lanes=()), "lanes"),
        (SimJob(id="1", lanes=((Compute(-1.0),),)), "computes"),
    ],
)
def test_a_job_that_cannot_run_is_refused(job, said) -> None:
    with pytest.raises(InputError, match=r"job 1|host z") as error:
        run(job)
    assert said in str(error.value)


def test_two_jobs_of_one_id_are_refused() -> None:
    with pytest.raises(InputError, match="job 1: two jobs"):
        run(coflow("1", ("a", "b", 1)), coflow("1", ("a", "b", 1)))


def test_what_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="job 1: it would never end"):
        hosts = {name: Host(name, 1e-300, 1e-300) for name in "ab"}
        simulate(Workload("w", hosts, (coflow("1", ("a", "b", 10)),)), Fifo(), Limits())


@pytest.mark.parametrize(
    "limits", [{"classes": 0}, {"period": 0.0}, {"period": -1.0}, {"quantum": -0.1}, {"delay": -1.0}]
)
def test_limits_that_cannot_be_are_refused(limits) -> None:
    with pytest.raises(InputError, match=next(iter(limits))):
        Limits(**limits)


def test_a_host_without_a_rate_is_refused() -> None:
    with pytest.raises(InputError, match="host a: egress_bps is 0"):
        simulate(Workload("w", {"a": Host("a", 1e9, 0.0)}, ()), Fifo(), Limits())


def test_a_port_that_is_not_there_cannot_be_watched() -> None:
    with pytest.raises(InputError, match="port z egress"):
        run(coflow("1", ("a", "b", 1)), watch=[Port("z", OUT)])
