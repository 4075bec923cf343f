"""Hosts that ask to be added: what they may take, who may decide, and what is kept over a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.config.config import Config
from controller.enrolment.enrolments import CHANGED, LOOKED_FOR_SECONDS, SILENT_SECONDS, Bounds, Enrolments
from controller.enrolment.listed import Listed
from controller.enrolment.record import Enrolment, Site
from controller.journal.store import Store, StoreError
from controller.model import Host
from controller.refusals import Conflict, NotFound
from controller.steps import in_steps
from controller.wire import HostDecision, HostRequest

FROM = "192.0.2.1"
BOUNDS = Bounds(most_waiting=6, most_waiting_per_address=4)
APPROVED, REFUSED = HostDecision(state="approved"), HostDecision(state="refused")
SETTINGS = {
    "hosts": [{"name": "listed", "address": "10.0.0.1", "switch": 1, "port": 1}],
    "links": [{"a": 1, "a_port": 9, "b": 2, "b_port": 9}],
    "control_addresses": ["10.0.0.254"],
}
LISTED = Listed.of(Config.model_validate(SETTINGS))
PATHS = LISTED._replace(needs_site=True)


def request(number: int = 7, **changed: Any) -> HostRequest:
    told = {
        "addresses": (f"10.0.0.{number}",),
        "interface": "eth0",
        "mac": f"02:00:00:00:00:{number:02x}",
        "ingress_bps": 25e9,
        "egress_bps": 25e9,
        "token_sha256": f"{number:064x}",
    }
    return HostRequest.model_validate(told | changed)


class World:
    """Enrolments with clocks of their own, over a journal where one is named."""

    def __init__(self, journal: Path | None = None) -> None:
        self.now = 1000.0
        self.store = Store(journal)
        self.enrolments = Enrolments(self.store, lambda: self.now, lambda: self.now)

    def ask(self, name: str, told: HostRequest, asked_from: str = FROM) -> Enrolment:
        return self.enrolments.ask(name, told, asked_from, LISTED, BOUNDS)

    def approve(self, name: str, listed: Listed = LISTED, **told: Any) -> Enrolment:
        return self.enrolments.decide(name, HostDecision(state="approved", **told), "ann", listed)

    def announce(self, name: str, site: Site, *, mac: str | None = None, secret: str | None = None) -> Enrolment | None:
        known = self.enrolments.find(name)
        moves = self.enrolments.locate(secret or known.announcement, mac or str(known.request.mac), site, LISTED)
        return moves[0].host if moves else None

    def commit(self) -> None:
        assert self.store.write(in_steps(self.store.dequeue_in_steps())) is None
        self.store.settle(None)
        self.store.close()


@pytest.fixture
def world() -> World:
    return World()


def test_a_host_that_waits_takes_no_part(world: World) -> None:
    assert world.ask("h7", request()).state == "pending"
    assert world.enrolments.hosts(LISTED) == {}
    assert world.enrolments.host_of_token(request().token_sha256) is None


def test_an_approved_host_takes_part_with_what_it_has_told(world: World) -> None:
    world.ask("h7", request())
    world.approve("h7")
    assert world.enrolments.hosts(LISTED) == {"h7": Host("h7", 25e9, 25e9, "10.0.0.7", mac="02:00:00:00:00:07")}
    assert world.enrolments.host_of_token(request().token_sha256) == "h7"


def test_the_operators_word_goes_before_the_hosts(world: World) -> None:
    world.ask("h7", request())
    decided = world.approve("h7", address="10.0.1.7", egress_bps=10e9, switch=2, port=4)
    assert decided.hosts()[0] == Host("h7", 25e9, 10e9, "10.0.1.7", 2, 4, mac="02:00:00:00:00:07")
    assert (decided.decided_by, decided.found_by) == ("ann", "operator")
    assert decided.addresses == ("10.0.1.7", "10.0.0.7")


def test_a_rate_that_nobody_has_told_is_shown_as_such(world: World) -> None:
    asked = world.ask("h7", request(egress_bps=None, ingress_bps=None))
    assert (asked.hosts()[0].egress_bps, asked.is_rate_known) == (1e9, False)
    assert world.approve("h7", ingress_bps=1e10, egress_bps=1e10).is_rate_known


def test_asking_again_changes_nothing_and_tells_what_was_decided(world: World) -> None:
    first = world.ask("h7", request())
    world.now += 10
    assert world.ask("h7", request()) == first
    world.enrolments.decide("h7", REFUSED, "ann", LISTED)
    assert world.ask("h7", request(addresses=("10.0.0.8",))).state == "refused"
    assert world.enrolments.find("h7").request == request()


@pytest.mark.parametrize(
    "changed", [{"addresses": ("10.0.0.8",)}, {"egress_bps": 1e12}, {"mac": "02:00:00:00:00:77"}, {"interface": "eth1"}]
)
def test_what_a_host_has_asked_for_stays_while_an_operator_looks_at_it(world: World, changed: dict[str, Any]) -> None:
    first = world.ask("h7", request())
    assert world.ask("h7", request(**changed)) == first
    said = world.enrolments.problems(first, LISTED)
    assert said == (CHANGED,)
    world.ask("h7", request())
    assert world.enrolments.problems(first, LISTED) == ()


def test_what_a_host_had_not_told_may_be_added(world: World) -> None:
    first = world.ask("h7", request(egress_bps=None, ingress_bps=None, mac=None))
    whole = world.ask("h7", request())
    assert (whole.request, whole.announcement) == (request(), first.announcement)
    # An interface that goes down tells no rate any more.
    assert world.ask("h7", request(egress_bps=None, ingress_bps=None)) == whole
    assert world.enrolments.problems(whole, LISTED) == ()


def test_an_approved_host_cannot_change_what_was_approved(world: World) -> None:
    world.ask("h7", request())
    approved = world.approve("h7")
    assert world.ask("h7", request(addresses=("10.0.0.99",))) == approved


# What is another's ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        ("listed", request(), "is a host of the settings"),
        ("h8", request(8, addresses=("10.0.0.1",)), "the address 10.0.0.1 is taken"),
        ("h8", request(8, addresses=("10.0.0.8", "10.0.0.1")), "the address 10.0.0.1 is taken"),
        ("h8", request(8, addresses=("10.0.0.254",)), "the address 10.0.0.254 is taken"),
        ("h8", request(8, addresses=("10.0.0.7",)), "the address 10.0.0.7 is taken"),
        ("h8", request(8, mac="02:00:00:00:00:07"), "the MAC address 02:00:00:00:00:07 is taken"),
        ("h8", request(8, token_sha256=request().token_sha256), "another host has asked with this token"),
        ("h7", request(8), "has asked already, with another token"),
    ],
)
def test_no_host_takes_what_another_has(world: World, name: str, told: HostRequest, said: str) -> None:
    world.ask("h7", request())
    world.approve("h7")
    before = list(world.enrolments)
    with pytest.raises(Conflict, match=said) as refused:
        world.ask(name, told)
    assert list(world.enrolments) == before
    # Who asks must not learn what other hosts are called.
    assert "h7" not in str(refused.value) or name == "h7"


def test_of_two_that_wait_for_the_same_only_one_is_approved(world: World) -> None:
    world.ask("h7", request(7))
    world.ask("h8", request(8, addresses=("10.0.0.7",)))
    said = world.enrolments.problems(world.enrolments.find("h7"), LISTED)
    assert said == ("the address 10.0.0.7 is that of h8, which waits too",)
    world.approve("h8")
    with pytest.raises(Conflict, match=r"h7 cannot be approved: the address 10\.0\.0\.7 is that of h8"):
        world.approve("h7")
    assert world.enrolments.find("h7").state == "pending"


def test_a_removed_host_gives_everything_back(world: World) -> None:
    world.ask("h7", request())
    world.approve("h7", switch=1, port=3)
    world.enrolments.remove("h7")
    assert world.enrolments.host_of_token(request().token_sha256) is None
    world.ask("other", request())
    assert world.approve("other", switch=1, port=3).site == Site(1, 3)
    with pytest.raises(NotFound):
        world.enrolments.remove("h7")


def test_an_approved_host_is_removed_and_not_refused(world: World) -> None:
    world.ask("h7", request())
    world.approve("h7")
    with pytest.raises(Conflict, match="h7 is approved; remove it instead"):
        world.enrolments.decide("h7", REFUSED, "ann", LISTED)


def test_who_is_not_there_cannot_be_approved(world: World) -> None:
    with pytest.raises(NotFound, match="no host h7 has asked"):
        world.approve("h7")


def test_settings_that_take_a_hosts_place_win(world: World) -> None:
    world.ask("h7", request())
    world.approve("h7", switch=1, port=3)
    for taken in ({"name": "h7", "address": "10.0.0.9"}, {"name": "new", "address": "10.0.0.7"}):
        listed = Listed.of(Config.model_validate({"hosts": [taken]}))
        assert world.enrolments.hosts(listed) == {}
        assert world.enrolments.problems(world.enrolments.find("h7"), listed)
    assert "h7" in world.enrolments.hosts(LISTED)


# Where it is ---------------------------------------------------------------------------------------------------------


def test_a_host_is_where_it_has_announced_itself(world: World) -> None:
    world.ask("h7", request())
    assert world.enrolments.are_looked_for
    found = world.announce("h7", Site(2, 5))
    assert found is not None
    assert (found.site, found.found_by) == (Site(2, 5), "announcement")
    assert not world.enrolments.are_looked_for
    assert world.announce("h7", Site(2, 5)) is None, "that is no news"
    assert world.approve("h7").hosts()[0] == Host("h7", 25e9, 25e9, "10.0.0.7", 2, 5, mac="02:00:00:00:00:07")


@pytest.mark.parametrize("forged", [{"secret": "0" * 32}, {"mac": "02:00:00:00:00:99"}])
def test_nobody_else_can_say_where_a_host_is(world: World, forged: dict[str, str]) -> None:
    world.ask("h7", request())
    assert world.announce("h7", Site(2, 5), **forged) is None
    assert world.enrolments.find("h7").site is None


@pytest.mark.parametrize("site", [Site(1, 1), Site(2, 9), Site(3, 3)])
def test_the_port_of_another_is_not_taken(world: World, site: Site) -> None:
    world.ask("h8", request(8))
    world.approve("h8", switch=3, port=3)
    world.ask("h7", request())
    assert world.announce("h7", site) is None
    assert f"where it cannot be: {site} is that of" in world.enrolments.problems(world.enrolments.find("h7"), LISTED)[0]
    with pytest.raises(Conflict, match="is that of"):
        world.approve("h7", switch=site.switch, port=site.port)


def placed(world: World, **sites: Site) -> None:
    """Approved hosts that have announced themselves at these ports."""
    for name, site in sites.items():
        world.enrolments.ask(name, request(int(name[1:])), FROM, LISTED, Bounds(999, 999))
        world.announce(name, site)
        world.approve(name)


def sites(world: World) -> dict[str, Site | None]:
    return {host.name: host.site for host in world.enrolments}


def test_a_host_with_another_cable_is_followed(world: World) -> None:
    placed(world, h7=Site(2, 5))
    known = world.enrolments.find("h7")
    moves = world.enrolments.locate(known.announcement, str(known.request.mac), Site(3, 1), LISTED)
    assert [(move.host.name, move.before, move.host.site) for move in moves] == [("h7", Site(2, 5), Site(3, 1))]
    assert world.enrolments.hosts(LISTED)["h7"].switch_port == 1
    assert world.enrolments.misplaced == []
    placed(world, h8=Site(2, 5))
    assert sites(world)["h8"] == Site(2, 5), "the port that it has left is free"


def test_a_port_that_an_operator_has_said_stays_and_the_operator_is_told(world: World) -> None:
    placed(world, h7=Site(2, 5))
    world.approve("h7", switch=2, port=6)
    assert world.announce("h7", Site(3, 1)) is None
    assert sites(world) == {"h7": Site(2, 6)}
    assert world.enrolments.misplaced == ["h7"]
    (problem,) = world.enrolments.problems(world.enrolments.find("h7"), LISTED)
    assert "it has announced itself at port 1 of switch 0000000000000003, and an operator has said port 6" in problem
    world.approve("h7", switch=3, port=1)
    assert (sites(world), world.enrolments.misplaced) == ({"h7": Site(3, 1)}, [])
    world.announce("h7", Site(2, 6))
    world.announce("h7", Site(3, 1))
    assert world.enrolments.misplaced == [], "it is back where it should be"


@pytest.mark.parametrize("order", ["h7 h8 h9", "h9 h8 h7", "h8 h7 h9"])
def test_hosts_that_have_changed_places_are_all_followed(world: World, order: str) -> None:
    placed(world, h7=Site(2, 1), h8=Site(2, 2), h9=Site(2, 3))
    new = {"h7": Site(2, 2), "h8": Site(2, 3), "h9": Site(2, 1)}
    for name in order.split():
        world.announce(name, new[name])
    assert sites(world) == new
    assert world.enrolments.misplaced == []


def test_a_whole_rack_that_was_shifted_by_a_port_is_followed(world: World) -> None:
    names = [f"h{number}" for number in range(2, 200)]
    placed(world, **{name: Site(2, 10 + number) for number, name in enumerate(names)})
    for number, name in enumerate(names):
        world.announce(name, Site(2, 11 + number))
    assert [site.port for site in sites(world).values() if site is not None] == sorted(
        (11 + number for number in range(len(names))), key=lambda port: f"h{port - 9}"
    )
    assert world.enrolments.misplaced == []


def test_a_host_that_has_not_left_its_port_keeps_it(world: World) -> None:
    placed(world, h7=Site(2, 1), h8=Site(2, 2))
    assert world.announce("h7", Site(2, 2)) is None
    assert sites(world) == {"h7": Site(2, 1), "h8": Site(2, 2)}
    assert world.enrolments.misplaced == ["h7"]
    assert "where it cannot be: port 2 of switch 0000000000000002 is that of h8" in " ".join(
        world.enrolments.problems(world.enrolments.find("h7"), LISTED)
    )
    world.enrolments.remove("h7")
    assert world.enrolments.misplaced == []


def test_a_refused_host_is_nowhere(world: World) -> None:
    world.ask("h7", request())
    world.enrolments.decide("h7", REFUSED, "ann", LISTED)
    assert world.announce("h7", Site(2, 5)) is None
    assert world.enrolments.find("h7").site is None


def test_who_waits_longest_is_known(world: World) -> None:
    assert world.enrolments.longest_wait == 0.0
    for number, name in enumerate(("h7", "h8"), 7):
        world.ask(name, request(number))
        world.now += 100.0
    assert world.enrolments.longest_wait == 200.0
    world.approve("h7")
    assert world.enrolments.longest_wait == 100.0
    world.now = 0.0
    assert world.enrolments.longest_wait == 0.0, "the clock was set back"


def test_where_the_controller_finds_the_paths_a_host_without_port_is_not_approved(world: World) -> None:
    world.ask("h7", request())
    with pytest.raises(Conflict, match="its switch and port are not known, and forwarding: paths needs them"):
        world.approve("h7", PATHS)
    world.announce("h7", Site(2, 5))
    world.approve("h7", PATHS)
    assert world.enrolments.hosts(PATHS)["h7"].switch_port == 5


def test_a_host_that_has_gone_silent_is_not_looked_for(world: World) -> None:
    world.ask("h7", request())
    world.now += LOOKED_FOR_SECONDS + 1
    assert not world.enrolments.are_looked_for
    world.ask("h7", request())
    assert world.enrolments.are_looked_for


def test_a_host_without_mac_is_not_looked_for(world: World) -> None:
    world.ask("h7", request(mac=None))
    assert not world.enrolments.are_looked_for


# Room ----------------------------------------------------------------------------------------------------------------


def test_only_so_many_wait_from_one_address_and_in_all(world: World) -> None:
    for number in range(10, 14):
        world.ask(f"h{number}", request(number))
    with pytest.raises(Conflict, match=r"4 hosts that asked from 192\.0\.2\.1 wait or are refused"):
        world.ask("h14", request(14))
    for number in (14, 15):
        world.ask(f"h{number}", request(number), "192.0.2.2")
    with pytest.raises(Conflict, match="6 hosts wait or are refused, which is the most"):
        world.ask("h16", request(16), "192.0.2.3")
    world.approve("h10")
    world.ask("h16", request(16), "192.0.2.3")


def test_refused_ones_count_and_silent_ones_are_forgotten(world: World) -> None:
    for number in range(10, 14):
        world.ask(f"h{number}", request(number))
    world.enrolments.decide("h10", REFUSED, "ann", LISTED)
    with pytest.raises(Conflict):
        world.ask("h14", request(14))
    world.now += SILENT_SECONDS + 1
    world.ask("h14", request(14))
    assert [each.name for each in world.enrolments] == ["h10", "h14"]


# Over a restart ------------------------------------------------------------------------------------------------------


def test_all_is_as_before_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path / "journal")
    for number in (7, 8, 9, 10):
        world.ask(f"h{number}", request(number))
    world.approve("h7", switch=1, port=3)
    world.enrolments.decide("h8", REFUSED, "ann", LISTED)
    world.announce("h9", Site(2, 5))
    world.enrolments.remove("h10")
    before = list(world.enrolments)
    world.commit()
    again = World(tmp_path / "journal")
    assert list(again.enrolments) == before
    assert again.enrolments.host_of_token(request().token_sha256) == "h7"
    with pytest.raises(Conflict):
        again.ask("h11", request(11, addresses=("10.0.0.7",)))
    again.store.close()


def test_a_journal_that_is_written_anew_has_all(tmp_path: Path) -> None:
    world = World(tmp_path / "journal")
    world.ask("h7", request())
    world.commit()
    again = World(tmp_path / "journal")
    again.store.failure = "it was full"
    again.commit()
    third = World(tmp_path / "journal")
    assert [each.name for each in third.enrolments] == ["h7"]
    third.store.close()


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    world = World(tmp_path / "journal")
    world.store.put("enrolment", "h7", '{"state": "approved"}')
    world.commit()
    with pytest.raises(StoreError, match="its record of enrolment 'h7' is damaged"):
        World(tmp_path / "journal")
