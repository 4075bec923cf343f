"""Waits at barriers and what makes them, over jobs and over bands."""

from __future__ import annotations

import pytest

from evaluation.tensorlights import causes
from evaluation.tensorlights.groups import AS_CLAIMED, FAIR
from evaluation.tensorlights.workload import PLACEMENTS, experiment
from topologies.lab.results import ArmResult, Control, JobResult
from topologies.trainer.barriers.waits import BarrierWait, Spread, WaitCauses


def job(wait: float, order: float | None = 0.5) -> JobResult:
    barrier = BarrierWait(9, wait, wait**2, Spread(2 * wait, wait), WaitCauses(wait, 0.1, 3 * wait, order))
    return JobResult(1.0, 2.0, 10 * wait, False, 99.0, history=(), barrier=barrier)


def test_causes_are_means_over_jobs_and_nothing_where_one_was_not_recorded() -> None:
    found = causes.means([job(1.0), job(3.0, order=None)])
    assert found == {"models_seconds": 2.0, "late_seconds": 0.1, "fan_out_seconds": 6.0, "order": 0.5}
    assert causes.as_text(found) == ("2.00", "0.10", "6.00", "0.50")
    unknown = JobResult(1.0, 2.0, 10.0, False, 99.0, history=())
    assert causes.means([job(1.0), unknown]) is None
    assert causes.as_text(None) == ("-",) * 4
    assert (causes.worker_wait(unknown), causes.server_wait(unknown), causes.server_variance(unknown)) == (None,) * 3
    assert (causes.server_wait(job(1.0)), causes.worker_variance(job(3.0))) == (2.0, 9.0)


def test_jobs_that_share_a_host_have_bands_by_launch() -> None:
    together = causes.bands(experiment(PLACEMENTS[0], 1, 16, AS_CLAIMED))
    assert [together[f"job{n:02d}"] for n in (1, 3, 4, 21)] == [0, 0, 1, 6]
    uneven = causes.bands(experiment((5, 16), 1, 16, AS_CLAIMED))
    assert [uneven[f"job{n:02d}"] for n in (1, 5, 6, 8, 9, 21)] == [0, 4, 0, 0, 1, 5]
    assert causes.bands(experiment(PLACEMENTS[-1], 1, 16, AS_CLAIMED)) == {}


def test_each_band_has_the_means_of_its_jobs() -> None:
    made = experiment(PLACEMENTS[0], 1, 16, AS_CLAIMED)
    results = {planned.id: job(1.0 + number // 3) for number, planned in enumerate(made.jobs)}
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    arm = ArmResult("x", 1, FAIR.name, results, control, (1,), 0.5, 60.0)
    found = causes.by_band([(made, arm), (made, arm)])
    assert [each["band"] for each in found] == list(range(7))
    assert found[2] == {
        "band": 2,
        "jct": pytest.approx(30.0),
        "barrier_wait": pytest.approx(3.0),
        "server_wait": pytest.approx(6.0),
        "fan_out_seconds": pytest.approx(9.0),
    }
