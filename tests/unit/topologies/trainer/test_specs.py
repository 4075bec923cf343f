"""What the controller is told of a job: its demand, its target, its family."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.families.names import FamilyKey, Owner, family_in_force
from controller.wire import JobSpec
from tests.support.trainer.tasks import plan
from topologies.experiments.family_plan import USER
from topologies.trainer.specs import job_spec


@given(st.sampled_from(["ps", "ring"]), st.integers(2, 13), st.integers(1, 10**8))
def test_the_registered_demand_is_the_architectures_total(architecture, hosts, size):
    spec = job_spec(plan(architecture, hosts, size), 1e9)
    assert sum(d.bytes for d in spec.demand) == 2 * (hosts - 1) * size
    assert sum(task.port is not None for task in spec.tasks) == (1 if architecture == "ps" else hosts)
    assert spec.arrival == 1e9


def test_a_jobs_target_is_registered():
    assert job_spec(plan("ps", 3, 8), 1e9).target is None
    assert job_spec(plan("ps", 3, 8).model_copy(update={"target": 0.92}), 1e9).target == 0.92


def test_a_job_is_of_the_family_that_it_names_and_never_of_its_models():
    alone, kin = plan("ps", 3, 8), plan("ring", 3, 8).model_copy(update={"family": "resnet"})
    assert alone.model
    assert owned_family(job_spec(alone, 1e9)) is None
    assert owned_family(job_spec(kin, 1e9)) == FamilyKey(Owner(user=USER), "resnet")


def owned_family(spec: JobSpec) -> FamilyKey | None:
    """The family that the controller gives a job which the agent on some host registers."""
    name = family_in_force(spec.family, spec.model)
    return None if name is None else FamilyKey(Owner.of(spec.user, "h1"), name)
