"""What is kept of families: the last runs of each, within bounds over all of them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from controller.families.families import MAX_FLAGGED, MAX_RUNS, Families
from controller.families.names import FamilyKey, Owner
from controller.families.run import Ending
from controller.model import Metric
from tests.support.controller.registry.family_runs import earlier

KEY = FamilyKey(Owner("ann"), "resnet")


def key(name: str, user: str = "ann") -> FamilyKey:
    return FamilyKey(Owner(user), name)


def test_the_last_runs_are_kept_in_the_order_of_their_ends():
    families = Families()
    ends = list(range(30))
    random.Random(1).shuffle(ends)
    gone = [dropped for end in ends for dropped in families.add(KEY, earlier(f"j{end}", float(end)))]
    assert [run.job for run in families.runs(KEY)] == [f"j{end}" for end in range(10, 30)]
    assert {run.job for run in gone} == {f"j{end}" for end in range(10)}


def test_the_same_run_is_kept_once():
    families = Families()
    families.add(KEY, earlier("a", 1.0, length=50.0))
    assert families.add(KEY, earlier("a", 1.0, length=60.0)) == []
    assert [run.length for run in families.runs(KEY)] == [60.0]
    families.add(KEY, earlier("a", 9.0, began=5.0))
    assert len(families.runs(KEY)) == 2


def test_a_job_that_fails_again_and_again_pushes_out_no_run_that_counts():
    families = Families()
    families.add(KEY, earlier("good", 0.0))
    for i in range(3 * MAX_RUNS):
        families.add(KEY, earlier(f"bad{i}", 1.0 + i, ending=Ending.ABORTED, reason="it stopped"))
    assert [run.job for run in families.runs(KEY) if run.counts] == ["good"]
    assert len(families.runs(KEY)) == 1 + MAX_FLAGGED


def test_too_many_families_cost_the_owner_of_most_the_one_used_least_lately():
    families = Families(max_families=4)
    families.add(key("old", "bob"), earlier("b", 0.0))
    for i, name in enumerate("uvw"):
        families.add(key(name), earlier(name, 10.0 - i))
    assert [run.job for run in families.add(key("x"), earlier("x", 20.0))] == ["w"]
    assert [(family.owner.user, family.name) for family in families] == [
        ("bob", "old"),
        ("ann", "u"),
        ("ann", "v"),
        ("ann", "x"),
    ]


def test_all_runs_are_bounded_too():
    families = Families(max_all_runs=10)
    for i in range(40):
        families.add(key(f"f{i % 7}"), earlier(f"j{i}", float(i)))
    assert sum(len(families.runs(family)) for family in families) <= 10


def test_a_history_is_the_same_value_until_a_run_ends():
    families = Families()
    assert families.history(KEY, Metric()).runs == ()
    families.add(KEY, earlier("a", 1.0))
    before = families.history(KEY, Metric())
    assert families.history(KEY, Metric()) is before
    families.add(KEY, earlier("b", 2.0))
    assert [run.job for run in families.history(KEY, Metric()).runs] == ["a", "b"]
    assert [run.job for run in families.remove(KEY)] == ["a", "b"]
    assert families.history(KEY, Metric()).runs == ()
    assert KEY not in families


def test_other_owners_of_the_name_know_nothing_of_each_other():
    families = Families()
    families.add(key("f", "ann"), earlier("a", 1.0))
    assert families.runs(key("f", "bob")) == ()
    assert families.runs(FamilyKey(Owner(host="ann"), "f")) == ()


ends = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.booleans()), max_size=60)


@given(ends)
def test_what_is_kept_can_be_put_back_from_what_is_kept(told):
    """A restart reads the runs in another order than that in which they ended."""
    families = Families(max_runs=4, max_flagged=2, max_families=4, max_all_runs=12)
    for name, end, counts in told:
        run = earlier(f"j{end}", float(end), ending=Ending.FINISHED if counts else Ending.REFUSED)
        families.add(key(str(name)), run)
    again = Families(max_runs=4, max_flagged=2, max_families=4, max_all_runs=12)
    for family in families:
        for run in reversed(families.runs(family)):
            assert again.add(family, run) == []
    assert {family: again.runs(family) for family in again} == {family: families.runs(family) for family in families}
