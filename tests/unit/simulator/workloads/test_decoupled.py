"""SaSP in the simulator: computing and sending overlap, worked out by hand; lanes that wait for each other."""

from __future__ import annotations

from argparse import ArgumentTypeError
from itertools import pairwise

import pytest

from controller.model import Demand, Direction, Host, Port
from controller.policies.fair import Fair
from simulator.engine import Limits, simulate
from simulator.errors import InputError
from simulator.jobs import Await, Compute, SimJob, Transfer, Workload
from simulator.sweep.values import synchronisation
from simulator.workloads.arrivals import job_bytes
from simulator.workloads.decoupled import LAYERS, decoupled_lanes
from simulator.workloads.training import Training, generate
from simulator.workloads.transfers import barrier_lane, worker_lanes

BYTE_A_SECOND = 8.0
HOSTS = {name: Host(name, ingress_bps=BYTE_A_SECOND, egress_bps=BYTE_A_SECOND) for name in "abcd"}


def ends(lanes, iterations: int = 3, staleness: int | None = None) -> list[float]:
    job = SimJob("j", lanes=lanes, iterations=iterations, staleness=staleness)
    return simulate(Workload("test", HOSTS, (job,)), Fair(), Limits()).jobs["j"].iteration_ends.tolist()


def one_worker(model_bytes: float, lead: int = 0, *, barrier: bool = True):
    """Forward 1 s, backward 2 s."""
    return decoupled_lanes("ps", ("a", "b"), model_bytes, (3.0,), lead=lead, barrier=barrier)


def test_sending_overlaps_the_backward_pass_and_pulls_overlap_pushes() -> None:
    # Freed at 1.5, 2, 2.5, 3 s; each part takes half a second up and then as long down.
    assert ends(one_worker(2.0)) == pytest.approx([4.0, 8.0, 12.0])
    assert ends((barrier_lane("ps", ("a", "b"), 2.0, 3.0),), staleness=0) == pytest.approx([7.0, 14.0, 21.0])


def test_front_parts_overtake_back_parts_that_have_not_begun() -> None:
    # Up: the last part from 1.5 to 3.5 s, then the first, which is free by now; so its forward begins at 7.5 s, in
    # time for the second's at 9.5 s. The first backward pass of the second iteration ends at 12.5 s.
    assert ends(one_worker(8.0)) == pytest.approx([11.5, 22.5, 33.5])


@pytest.mark.parametrize(("lead", "expected"), [(1, [4.0, 7.0, 10.0]), (2, [4.0, 7.0, 10.0])])
def test_with_a_lead_computing_never_waits_for_a_network_that_keeps_up(lead, expected) -> None:
    assert ends(one_worker(2.0, lead)) == pytest.approx(expected)


def test_with_a_lead_a_slow_network_never_waits_for_computing() -> None:
    found = ends(one_worker(8.0, 1), 6)
    # 8 s a way; from the second iteration on the link is always busy.
    assert [b - a for a, b in pairwise(found[1:])] == pytest.approx([8.0] * 4)


@pytest.mark.parametrize(
    ("lead", "barrier", "fast_ends"),
    [
        (0, True, 19.0),  # BSP: its third iteration begins when the slow one's second is over
        (1, True, 10.0),  # SSP(1): when the slow one's first is over
        (2, True, 3.0),
        (0, False, 3.0),  # ASP: it waits for nobody
    ],
)
def test_how_far_a_fast_worker_runs_ahead_is_the_schemes(lead, barrier, fast_ends) -> None:
    lanes = decoupled_lanes("ps", ("a", "b", "c"), 0.004, (1.0, 9.0), lead=lead, barrier=barrier)
    out = Port("b", Direction.EGRESS)
    job = SimJob("j", lanes=lanes, iterations=3, staleness=None)
    found = simulate(Workload("test", HOSTS, (job,)), Fair(), Limits(), watch=[out])
    assert found.jobs["j"].iteration_ends.tolist() == pytest.approx([9.0, 18.0, 27.0], abs=0.02)
    sending = found.timeline[out]
    assert sending[:, 1].max() == pytest.approx(fast_ends, abs=0.02)


@pytest.mark.parametrize("architecture", ["ring", "tree"])
def test_all_reduce_overlaps_too(architecture) -> None:
    hosts, compute = ("a", "b", "c", "d"), 3.0
    plain = ends((barrier_lane(architecture, hosts, 2.0, compute),), staleness=0)
    sasp = ends(decoupled_lanes(architecture, hosts, 2.0, (compute,) * 4, lead=0, barrier=True))
    ahead = ends(decoupled_lanes(architecture, hosts, 2.0, (compute,) * 4, lead=1, barrier=True))
    assert plain[-1] > sasp[-1] > ahead[-1] >= 3 * compute


@pytest.mark.parametrize("architecture", ["ps", "ring", "tree"])
def test_the_same_bytes_are_sent(architecture) -> None:
    plain = SimJob("p", lanes=(barrier_lane(architecture, "abcd", 10.0, 1.0),))
    hosts = 3 if architecture == "ps" else 4
    sasp = SimJob("s", lanes=decoupled_lanes(architecture, "abcd", 10.0, (1.0,) * hosts, lead=0, barrier=True))
    assert job_bytes(plain) == pytest.approx(job_bytes(sasp))
    per_layer = {"ps": 2 * hosts, "ring": 1, "tree": 2}[architecture]
    assert len(sasp.lanes) == hosts + LAYERS * per_layer


@pytest.mark.parametrize("iterations", [1, 4])
def test_plain_workers_are_never_faster(iterations) -> None:
    computes = (1.0, 1.1, 1.3)
    plain = ends(worker_lanes("abcd", 1.0, computes), max(2, iterations), staleness=2)
    sasp = ends(decoupled_lanes("ps", "abcd", 1.0, computes, lead=2, barrier=True), max(2, iterations))
    assert sasp[-1] <= plain[-1]


def test_generated_jobs_run_to_their_end_under_the_controllers_classes() -> None:
    for mix in (
        Training(hosts=8, jobs=4, iterations=(4, 6), workers=(2, 3), lead=0),
        Training(hosts=8, jobs=4, iterations=(4, 6), workers=(2, 3), staleness=2, lead=2),
        Training(hosts=8, jobs=4, iterations=(4, 6), workers=(2, 3), architectures=("ps",), staleness=None, lead=1),
    ):
        workload = generate(mix)
        plain = generate(Training(**{**mix_values(mix), "staleness": 0, "lead": None}))
        found = simulate(workload, Fair(), Limits(classes=3, period=1.0))
        before = simulate(plain, Fair(), Limits(classes=3, period=1.0))
        for job in workload.jobs:
            times = found.jobs[job.id].iteration_ends
            assert len(times) == job.iterations
            assert (times[1:] >= times[:-1]).all()
            assert found.jobs[job.id].bytes == pytest.approx(before.jobs[job.id].bytes)


def mix_values(mix: Training) -> dict[str, object]:
    return {name: getattr(mix, name) for name in mix.__dataclass_fields__}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("bsp", (0, None)), ("bsp+sasp", (0, 0)), ("ssp:3", (3, None)), ("ssp:3+sasp", (3, 3)), ("asp", (None, None)),
     ("asp+sasp", (None, 0)), ("asp+sasp:2", (None, 2))],
)  # fmt: skip
def test_how_workers_keep_in_step_is_asked_for(text, expected) -> None:
    assert synchronisation(text) == expected


@pytest.mark.parametrize("text", ["", "sasp", "bsp:1", "ssp", "ssp+sasp", "ssp:0+sasp", "asp:2", "bsp+sasp:1", "asp+"])
def test_what_is_no_mode_is_refused(text) -> None:
    with pytest.raises(ArgumentTypeError):
        synchronisation(text)


@pytest.mark.parametrize(
    ("changes", "word"), [({"lead": -1}, "lead"), ({"lead": 2}, "lead"), ({"staleness": 1, "lead": 2}, "lead")]
)
def test_a_mix_that_cannot_be_is_refused(changes, word) -> None:
    with pytest.raises(InputError, match=word):
        generate(Training(**changes))


@pytest.mark.parametrize("step", [Await(5, 0), Await(0, 9), Await(0, 0, -1)])
def test_a_step_that_waits_for_what_there_is_not_is_refused(step) -> None:
    with pytest.raises(InputError, match="waits for"):
        ends(((Compute(1.0), step),))


def test_of_those_that_wait_for_a_turn_the_oldest_and_then_the_most_urgent_goes() -> None:
    def lane(delay: float, urgency: int):
        return (Compute(delay), Transfer((Demand("a", "b", 1.0),), turn=7, urgency=urgency))

    # From 1 to 2 s the first is sent; then the third, though the second has waited for longer.
    late = (Await(1, 1), Compute(0.5))
    found = ends((lane(1.0, 5), lane(1.1, 4), lane(1.2, 1), late), 2, staleness=0)
    assert found == pytest.approx([4.5, 9.0])
