"""What ``scripts/evaluate tensorlights`` measures."""

from __future__ import annotations

from pathlib import Path

from evaluation.tensorlights.groups import ARMS, TOGETHER, WHY, Group, groups
from evaluation.tensorlights.workload import PLACEMENTS
from topologies.lab.lab import memory_for
from topologies.lab.results import ArmResult, Control, JobResult, LabRequest, LabResult, load_request, save
from topologies.lab.use.tcp_use import TcpUse


def test_the_claim_has_paired_seeds_and_no_arm_always_goes_first() -> None:
    made = groups()
    claimed = [group for group in made if not group.variant.name]
    for placement in PLACEMENTS:
        seeds = {group.seed for group in claimed if group.placement == placement}
        assert len(seeds) >= (5 if placement == TOGETHER else 3)
    for group in claimed:
        assert sorted(choice.name for choice in group.request().policies) == ["fair", "tls-one", "tls-rr"]
    for group in made:
        assert {choice.policy for choice in group.request().policies} == {"fair"}, "nothing but the NICs differs"
    assert len({group.request().policies[0].name for group in claimed if group.placement == TOGETHER}) == 3
    assert len({group.name for group in made}) == len(made)


def test_each_explanation_has_jobs_of_the_claims_seeds_under_fair_sharing_and_one_order() -> None:
    made = [group for group in groups() if group.variant.name]
    assert {group.variant.name for group in made} == set(WHY)
    assert {group.seed for group in made} <= {group.seed for group in groups() if group.placement == TOGETHER}
    for group in made:
        order = "tls-each" if group.variant.name == "each" else "tls-one"
        assert sorted(choice.name for choice in group.request().policies) == ["fair", order]
        assert len(group.placement) == 1
    assert [group for group in groups(others=False) if group.variant.name] == []


def test_quick_is_one_seed_of_short_jobs_with_all_servers_on_one_host() -> None:
    (group,) = groups(quick=True)
    assert group.placement == TOGETHER
    assert {choice.name for choice in group.request().policies} == {"fair", "tls-one", "tls-rr"}
    assert group.experiment().jobs[0].iterations < groups()[0].experiment().jobs[0].iterations


def test_a_request_goes_to_the_box_and_comes_back_whole(tmp_path: Path) -> None:
    request = Group((7,) * 3, 62, policies=ARMS).request()
    save(tmp_path / "request.json", request)
    found = load_request(tmp_path / "request.json")
    assert found == request
    assert isinstance(found, LabRequest)
    assert {choice.nic for choice in found.policies} == {"none", "tls-one", "tls-rr", "tls-each"}
    assert {experiment.segments for experiment in found.experiments} == {2}


def test_the_small_form_of_a_result_has_all_that_is_added_up() -> None:
    job = JobResult(1.0, 2.0, 3.0, False, 3.0, history=((1.0, 1, 0.5),))
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    arm = ArmResult("x", 1, "fair", {"a": job}, control, (1,), 0.5, 60.0, tcp=(TcpUse("h1", 9, 1, 0, 0),))
    (small,) = Group(TOGETHER, 1).small(LabResult("uml", 21, 1e7, 8, None, {}, (arm,))).arms
    assert small.jobs["a"].history == ()
    assert small.tcp == arm.tcp


def test_a_box_has_more_memory_for_more_hosts() -> None:
    assert [memory_for(hosts) for hosts in (2, 13, 21)] == ["3072M", "3072M", "4096M"]
