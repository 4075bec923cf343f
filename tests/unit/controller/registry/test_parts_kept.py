"""What a restart of the controller, and hosts that leave the settings, leave of the parts of jobs."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from controller.declared.parts.part import Part
from controller.journal.store import Store, StoreError
from controller.refusals import Conflict
from controller.registry.parts import PartChange
from controller.wire import HostReport, PartSpec
from tests.support.controller.registry_world import HOSTS, Clock, job_spec
from tests.support.controller.unpaused import UnpausedRegistry, commit, dequeued

NAMES = tuple(HOSTS)


class Kept:
    """A registry with a journal, which can be started again with other hosts."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock, self.seq = path, Clock(), 0
        self._open(NAMES)

    def _open(self, hosts: Any) -> None:
        self.store = Store(self.path)
        self.registry = UnpausedRegistry({name: HOSTS[name] for name in hosts}, self.store, self.clock)

    def restart(self, *hosts: str) -> None:
        self.close()
        self._open(hosts or NAMES)

    def close(self) -> None:
        commit(self.store)
        self.store.close()

    def part(self, host: str, **told: Any) -> PartChange:
        spec = PartSpec.model_validate({"launcher": "slurm", "user": "ann", "arrival": 900.0} | told)
        return self.registry.parts.put("a", host, Part.of(spec), 0.0, by_host=True, earliest=None)

    def end(self, host: str) -> None:
        self.seq += 1
        job = {"job": "a", "ended": True, "as_of": 990.0, "followed": True}
        body = {"session": "s", "seq": self.seq, "sent_at": self.clock.now, "jobs": [job]}
        self.registry.report(host, HostReport.model_validate(body), 0.0)

    def facts(self) -> Any:
        view = self.registry.job_state("a")
        assert view.parts is not None
        return view.state, view.spec.text, view.arrival, view.parts.missing, dict(view.parts.remembered)

    def records(self, kind: str) -> dict[str, str]:
        """The journal's records of a kind, once it is written and read again."""
        self.restart()
        return dict(self.store.contents().records.get(kind, {}))


@pytest.fixture
def kept(tmp_path: Path) -> Any:
    made = Kept(tmp_path / "j.db")
    yield made
    made.close()


def test_parts_are_the_same_after_a_restart(kept: Kept) -> None:
    kept.part("h1", is_first=True, iterations=9.0, ranks=4, metric={"name": "loss", "direction": "min"}, hosts=NAMES)
    kept.part("h2", hosts=NAMES)
    kept.part("h3", hosts=[*NAMES, "elsewhere"])
    kept.part("h4")
    kept.end("h2")
    kept.registry.parts.remove("a", "h4", 1e12, 0.0)
    before = kept.facts()
    kept.restart()
    assert kept.facts() == before
    view = kept.registry.job_state("a")
    assert view.parts is not None
    assert view.parts.first is not None
    assert len(view.parts.lists) == 2
    assert kept.part("h4") is PartChange.UNCHANGED, "it is remembered that it was removed"
    assert kept.part("h2") is PartChange.UNCHANGED


def test_a_job_that_has_ended_is_the_same_after_a_restart(kept: Kept) -> None:
    kept.part("h1", is_first=True, hosts=NAMES)
    kept.part("h2", hosts=NAMES)
    kept.end("h1")
    before = kept.facts()
    kept.restart()
    assert kept.facts() == before
    assert before[3] == [], "nobody needs the names of the hosts any more"
    with pytest.raises(Conflict):
        kept.part("h3")


def test_a_part_costs_the_journal_one_small_record(kept: Kept) -> None:
    kept.part("h1", hosts=[*NAMES, *(f"far-{i}" for i in range(1000))])
    kept.part("h2", hosts=[*NAMES, *(f"far-{i}" for i in range(1000))])
    assert "far-7" in kept.records("job")["a"]
    kept.part("h3", hosts=[*NAMES, *(f"far-{i}" for i in range(1000))])
    noted = dequeued(kept.store)
    kept.store.settle(kept.store.write(noted))
    assert list(noted.records) == [("part", "a/h3")]
    assert len(noted.records["part", "a/h3"] or "") < 500


@pytest.mark.parametrize("how", ["removed", "whole", "anew"])
def test_nothing_of_parts_stays_in_the_journal_that_are_no_more(kept: Kept, how: str) -> None:
    kept.part("h1")
    kept.part("h2")
    assert set(kept.records("part")) == {"a/h1", "a/h2"}
    if how == "removed":
        kept.registry.delete_job("a", 0.0)
    elif how == "whole":
        kept.registry.put_job("a", job_spec(), 0.0)
    else:
        kept.end("h1")
        kept.end("h2")
        kept.clock.now = 2000.0
        kept.part("h3", arrival=1999.0)
    assert set(kept.records("part")) == ({"a/h3"} if how == "anew" else set())
    kept.restart()


def test_a_journal_that_was_degraded_has_all_parts_again(kept: Kept) -> None:
    kept.part("h1", hosts=NAMES)
    kept.store.settle("the disk is full")
    kept.part("h2", hosts=NAMES)
    before = kept.facts()
    kept.restart()
    assert kept.facts() == before


def test_a_job_goes_on_without_a_host_that_has_left_the_settings(kept: Kept) -> None:
    kept.part("h1", is_first=True)
    kept.part("h2")
    kept.restart("h1", "h3")
    view = kept.registry.job_state("a")
    assert (view.state, view.spec.hosts) == ("waiting", {"h1"})
    kept.restart()
    assert kept.registry.job_state("a").spec.hosts == {"h1", "h2"}, "it is in the settings again"


def test_where_it_ran_on_such_hosts_only_it_waits_for_them(kept: Kept) -> None:
    kept.part("h1")
    kept.restart("h3")
    assert not kept.registry.has_job("a")
    with pytest.raises(Conflict, match="job a waits for hosts that are not in the settings"):
        kept.part("h3")
    kept.registry.change_hosts({name: HOSTS[name] for name in NAMES}, 30.0)
    assert kept.registry.job_state("a").spec.hosts == {"h1"}
    assert kept.part("h3") is PartChange.CREATED


def test_a_job_that_had_ended_elsewhere_has_ended_without_the_other_host(kept: Kept) -> None:
    kept.part("h1")
    kept.part("h2")
    kept.end("h1")
    kept.restart("h1", "h3")
    assert kept.registry.job_state("a").state == "ended"


@pytest.mark.parametrize("edit", ["DELETE FROM record WHERE kind = 'part'", "UPDATE record SET body = '{}'"])
def test_a_job_without_its_parts_is_a_damaged_record(kept: Kept, edit: str) -> None:
    kept.part("h1")
    kept.close()
    with sqlite3.connect(kept.path) as connection:
        connection.execute(edit)
    connection.close()
    with pytest.raises(StoreError, match="is damaged"):
        kept.restart()
    kept.path.unlink()
    kept._open(NAMES)
