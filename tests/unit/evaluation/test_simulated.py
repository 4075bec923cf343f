"""An experiment of the lab in the simulator: the same jobs, hosts and knowledge."""

from __future__ import annotations

import pytest

from controller.model import Role
from evaluation.simulated import PAYLOAD_SHARE, workload
from simulator.workloads import curves
from topologies.experiments.declaration import Declaration
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.workload import LIGHT, generate

EXPERIMENT = generate(LIGHT, 3)
FIRST, SECOND = EXPERIMENT.jobs[:2]


def test_hosts_and_jobs_are_those_of_the_experiment() -> None:
    made = workload(EXPERIMENT)
    assert (made.name, made.seed, made.earlier) == (EXPERIMENT.name, 3, ())
    assert len(made.hosts) == EXPERIMENT.hosts
    assert {host.ingress_bps for host in made.hosts.values()} == {EXPERIMENT.link_bps * PAYLOAD_SHARE}
    for planned, job in zip(EXPERIMENT.jobs, made.jobs, strict=True):
        assert (job.id, job.arrival, job.iterations) == (planned.id, planned.arrival, planned.iterations)
        assert (job.target, job.family) == (None, "")
        assert job.curve == curves.replay(curves.load(str(planned.curve)), planned.iterations)
        assert [task.host for task in job.tasks] == list(planned.hosts)
        assert (job.tasks[0].role is Role.PS) == (planned.architecture == "ps")


def test_what_is_declared_and_what_ended_before_is_known() -> None:
    own = FIRST.model_copy(update={"target": 0.5, "family": "own", "curve": (0.1, 0.2)})
    earlier = (
        EarlierJob(id="e1", family="own", iterations=4, curve=(0.1, 0.2)),
        EarlierJob(id="e2", family="b", iterations=1, curve=(0.3,)),
    )
    experiment = EXPERIMENT.model_copy(update={"jobs": (own, *EXPERIMENT.jobs[1:]), "earlier": earlier})
    made = workload(experiment, {SECOND.id: Declaration(target=0.75, family="b")})
    assert [(job.target, job.family) for job in made.jobs[:3]] == [(0.5, "own"), (0.75, "b"), (None, "")]
    assert set(made.jobs[0].curve) == {0.1, 0.2}
    assert [(job.family, job.iterations, job.curve) for job in made.earlier] == [
        ("own", 4, (0.1, 0.1, 0.2, 0.2)),
        ("b", 1, (0.3,)),
    ]


def test_what_it_would_not_show_is_refused() -> None:
    fabric = EXPERIMENT.model_copy(update={"topology": "leaf_spine"})
    with pytest.raises(ValueError, match="it must be on the testbed"):
        workload(fabric)
    with pytest.raises(ValueError, match="its tasks share processors"):
        workload(EXPERIMENT.model_copy(update={"processors": 6}))
    apart = EXPERIMENT.model_copy(update={"jobs": (FIRST.model_copy(update={"sync": "asp", "architecture": "ps"}),)})
    with pytest.raises(ValueError, match="its synchronisation is asp; it must be bsp"):
        workload(apart)
