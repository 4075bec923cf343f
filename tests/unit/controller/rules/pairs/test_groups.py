"""Groups of hosts by their jobs: what they say of each pair of hosts, and how few of them change with a job. Pure."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.rules.pairs import groups as groups_module
from controller.rules.pairs.groups import NO_GROUP, RULES_A_HOST, Group, Grouped, HostsByJob, Shared, grouped, same_jobs

HOSTS = [f"h{n:02}" for n in range(12)]
JOBS = st.dictionaries(st.sampled_from("abcdefgh"), st.sets(st.sampled_from(HOSTS), min_size=1).map(sorted), max_size=7)
Result = tuple[list[Grouped], list[Shared]]


def groups_of(hosts_by_job: HostsByJob, *, between_jobs: bool = True) -> Result:
    return grouped(same_jobs(hosts_by_job), hosts_by_job, between_jobs=between_jobs)


def by_host(groups: list[Grouped]) -> dict[str, Group | None]:
    return {name: each.group for each in groups for name in each.same.hosts}


def said(found: Result, src: str, dst: str) -> list[str | None]:
    """What the rules with the highest priority say of a pair of hosts; empty: nothing."""
    group = by_host(found[0])[src]
    own = [dict(each.to)[dst] for each in found[1] if each.group == group and group.own and dst in dict(each.to)]
    main = [
        dict(each.to)[dst]
        for each in found[1]
        if group is not None and each.group == Group(group.main) and dst in dict(each.to)
    ]
    return own or main


@settings(max_examples=60, deadline=None)
@given(JOBS, st.booleans())
def test_each_pair_is_told_by_one_rule_alone_and_rightly(hosts_by_job: HostsByJob, between_jobs: bool) -> None:
    found = groups_of(hosts_by_job, between_jobs=between_jobs)
    groups = by_host(found[0])
    assert groups.keys() == {name for names in hosts_by_job.values() for name in names}
    for src, dst in permutations(sorted(groups), 2):
        shared = [job for job, names in hosts_by_job.items() if {src, dst} <= set(names)]
        words = said(found, src, dst)
        if groups[src] in {None, NO_GROUP}:
            assert words == []
            assert groups[src] is NO_GROUP or not shared or (between_jobs and len(shared) > 1)
        elif len(shared) == 1:
            assert words == shared
        elif shared:
            assert words == [None] or (between_jobs and words == [])
        else:
            assert words == []


@settings(max_examples=60, deadline=None)
@given(JOBS, st.booleans())
def test_rules_stay_within_a_multiple_of_the_jobs_hosts(hosts_by_job: HostsByJob, between_jobs: bool) -> None:
    groups, shared = groups_of(hosts_by_job, between_jobs=between_jobs)
    assert sum(len(each.to) for each in shared) <= RULES_A_HOST * sum(map(len, hosts_by_job.values()))
    assert len({(each.group, name) for each in shared for name, _ in each.to}) == sum(len(each.to) for each in shared)
    senders = {name: group for name, group in by_host(groups).items() if group is not None}
    for each in shared:
        assert each.hosts == {
            name
            for name, group in senders.items()
            if group == each.group or (not each.group.own and group.main == each.group.main)
        }


@pytest.mark.parametrize("size", [8, 12])
def test_a_small_job_on_hosts_of_a_large_one_makes_rules_for_its_own_hosts_alone(size: int) -> None:
    large = {"large": HOSTS[:size], "other": HOSTS[:2]}
    before, after = groups_of(large), groups_of(large | {"a": HOSTS[4:6]})
    assert [each for each in after[1] if each not in before[1]] == [
        Shared(by_host(after[0])[HOSTS[4]], frozenset(HOSTS[4:6]), ((HOSTS[4], None), (HOSTS[5], None)), "large")
    ]
    assert [each for each in before[1] if each not in after[1]] == []
    old, new = by_host(before[0]), by_host(after[0])
    assert {name for name in old if old[name] != new[name]} == set(HOSTS[4:6])


def test_a_job_that_shares_nothing_makes_no_group() -> None:
    before = groups_of({"large": HOSTS[:8]})
    after = groups_of({"large": HOSTS[:8], "a": HOSTS[3:4]})
    assert after[1] == before[1]
    assert by_host(after[0]) == by_host(before[0])
    assert groups_of({"a": HOSTS[3:4]})[0][0].group is None


def test_main_jobs_that_no_group_has_need_no_rules() -> None:
    _, shared = groups_of({"a": HOSTS[:4], "b": HOSTS[:4]}, between_jobs=False)
    assert [each.to for each in shared] == [tuple((name, None) for name in HOSTS[:4])]
    assert groups_of({"a": HOSTS[:4], "b": HOSTS[:4]})[1] == []


def test_more_groups_than_there_are_numbers_are_crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts_by_job = {"a": HOSTS} | {f"b{n}": HOSTS[2 * n : 2 * n + 2] for n in range(4)}
    assert {each.own for each in by_host(groups_of(hosts_by_job)[0]).values() if each} != {0}
    monkeypatch.setattr(groups_module, "OF_ITS_OWN", 4)
    assert set(by_host(groups_of(hosts_by_job)[0]).values()) == {NO_GROUP}
