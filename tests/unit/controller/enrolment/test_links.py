"""Hosts that enrol with several interfaces, and with addresses of both families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from controller.config.enrolment import EnrolmentSettings
from controller.enrolment.enrolments import Bounds, Enrolments
from controller.enrolment.listed import Listed
from controller.enrolment.record import Enrolment, Site, within
from controller.journal.store import Store
from controller.model import Host
from controller.refusals import Conflict
from controller.steps import in_steps
from controller.wire import HostDecision, HostRequest

LISTED = Listed(frozenset(), {}, needs_site=False)
PATHS = LISTED._replace(needs_site=True)
BOUNDS = Bounds(most_waiting=6, most_waiting_per_address=4)


def mac(rail: int, number: int = 7) -> str:
    return f"02:00:00:00:{rail:02x}:{number:02x}"


def ipv6(rail: int, number: int = 7) -> str:
    return f"fd00:{rail + 1}::{number}"


def link(rail: int, number: int = 7, **changed: Any) -> dict[str, Any]:
    told = {
        "interface": f"eth{rail}",
        "addresses": (f"10.{rail}.0.{number}", ipv6(rail, number)),
        "mac": mac(rail, number),
        "ingress_bps": 100e9,
        "egress_bps": 100e9,
    }
    return told | changed


def request(number: int = 7, *, links: tuple[dict[str, Any], ...] | None = None) -> HostRequest:
    links = (link(0, number), link(1, number)) if links is None else links
    told = {
        "addresses": (f"10.0.0.{number}",),
        "interface": "eth0",
        "mac": mac(0, number),
        "ingress_bps": 100e9,
        "egress_bps": 100e9,
        "token_sha256": f"{number:064x}",
        "links": links,
    }
    return HostRequest.model_validate(told)


def ipv6_only(number: int = 7, *, links: tuple[dict[str, Any], ...] | None = None) -> HostRequest:
    rails = tuple(link(rail, number, addresses=(ipv6(rail, number),)) for rail in (0, 1))
    told = request(number).model_dump() | {"addresses": (), "links": rails if links is None else links}
    return HostRequest.model_validate(told)


class World:
    def __init__(self, journal: Path | None = None) -> None:
        self.store = Store(journal)
        self.enrolments = Enrolments(self.store, lambda: 1000.0, lambda: 1000.0)

    def ask(self, name: str, told: HostRequest) -> Enrolment:
        return self.enrolments.ask(name, told, "192.0.2.1", LISTED, BOUNDS)

    def approve(self, name: str, listed: Listed = LISTED, **told: Any) -> Enrolment:
        return self.enrolments.decide(name, HostDecision(state="approved", **told), "ann", listed)

    def announce(self, name: str, interface_mac: str, site: Site) -> list[tuple[str | None, Site | None, Site]]:
        secret = self.enrolments.find(name).announcement
        moves = self.enrolments.locate(secret, interface_mac, site, LISTED)
        return [(move.interface, move.before, move.site) for move in moves]

    def sites(self, name: str) -> list[Site | None]:
        return [each.site for each in self.enrolments.find(name).links]


@pytest.fixture
def world() -> World:
    return World()


def test_each_interface_takes_part_with_its_addresses_rate_and_mac(world: World) -> None:
    world.ask("h7", request())
    world.approve("h7")
    assert world.enrolments.hosts(LISTED) == {
        f"h7/eth{rail}": Host(
            f"h7/eth{rail}", 100e9, 100e9, f"10.{rail}.0.7", more_addresses=(ipv6(rail),), mac=mac(rail),
            interface=f"eth{rail}",
        )
        for rail in (0, 1)
    }  # fmt: skip


def test_a_host_with_one_interface_has_its_own_name_and_both_families(world: World) -> None:
    world.ask("h7", request(links=(link(0),)))
    (host,) = world.approve("h7").hosts()
    assert (host.name, host.interface, host.addresses) == ("h7", None, ("10.0.0.7", "fd00:1::7"))


def test_a_host_with_ipv6_alone_takes_part(world: World) -> None:
    told = ipv6_only()
    known = world.ask("h7", told)
    assert (known.address, known.addresses) == (ipv6(0), (ipv6(0), ipv6(1)))
    assert world.announce("h7", mac(0), Site(1, 5)) == [("eth0", None, Site(1, 5))]
    first, second = world.approve("h7").hosts()
    assert (first.address, first.addresses, first.switch_port) == (None, (ipv6(0),), 5)
    assert (second.address, second.addresses) == (None, (ipv6(1),))
    with pytest.raises(Conflict, match="is taken"):
        world.ask("h8", ipv6_only(8, links=(link(0, 8, addresses=(ipv6(1),)),)))
    first, _ = world.approve("h7", address="fd00:1::99").hosts()
    assert first.addresses == ("fd00:1::99", ipv6(0))


def test_each_interface_is_found_by_its_own_announcement(world: World) -> None:
    world.ask("h7", request())
    assert world.announce("h7", mac(1), Site(2, 5)) == [("eth1", None, Site(2, 5))]
    assert world.enrolments.are_looked_for, "eth0 is not found yet"
    with pytest.raises(Conflict, match="the switch and port of eth0 are not known"):
        world.approve("h7", PATHS)
    assert world.announce("h7", mac(0), Site(1, 5)) == [("eth0", None, Site(1, 5))]
    assert not world.enrolments.are_looked_for
    hosts = world.approve("h7", PATHS).hosts()
    assert [(host.switch, host.switch_port) for host in hosts] == [(1, 5), (2, 5)]


def test_interfaces_that_have_changed_cables_are_both_followed(world: World) -> None:
    world.ask("h7", request())
    world.approve("h7")
    world.announce("h7", mac(0), Site(1, 5))
    world.announce("h7", mac(1), Site(2, 5))
    assert world.announce("h7", mac(0), Site(2, 5)) == [], "eth1 has not left it"
    (problem,) = world.enrolments.problems(world.enrolments.find("h7"), LISTED)
    assert "eth0 has announced itself where it cannot be" in problem and "is that of eth1" in problem
    assert world.enrolments.misplaced == ["h7"]
    world.announce("h7", mac(1), Site(1, 5))
    assert world.sites("h7") == [Site(2, 5), Site(1, 5)]
    assert world.enrolments.misplaced == []


def test_no_host_takes_what_an_interface_of_another_has(world: World) -> None:
    world.ask("h7", request())
    world.approve("h7")
    world.announce("h7", mac(1), Site(2, 5))
    for taken in (link(1, 8, addresses=("10.2.0.8", "fd00:2::7")), link(1, 8, mac=mac(1))):
        with pytest.raises(Conflict, match="is taken"):
            world.ask("h8", request(8, links=(link(0, 8), taken)))
    world.ask("h8", request(8))
    assert world.announce("h8", mac(1, 8), Site(2, 5)) == []
    assert world.sites("h8") == [None, None]


def test_an_operator_says_of_the_first_interface_where_it_is_and_the_rate_of_each(world: World) -> None:
    world.ask("h7", request())
    first, second = world.approve("h7", address="10.0.1.7", switch=1, port=9, ingress_bps=1e9, egress_bps=1e9).hosts()
    assert (first.address, first.switch, first.switch_port) == ("10.0.1.7", 1, 9)
    assert (second.address, second.switch, second.ingress_bps) == ("10.1.0.7", None, 1e9)
    with pytest.raises(Conflict, match="is an address of eth1"):
        world.approve("h7", address="10.1.0.7")


def test_addresses_outside_the_networks_are_left_out() -> None:
    settings = EnrolmentSettings(networks=("10.0.0.0/16", "fd00:1::/32"))
    told = request(links=(link(0), link(2), link(1, addresses=("192.0.2.7", "fd00:1:1::7"))))
    assert [(each.interface, each.addresses) for each in within(told, settings.allows).links] == [
        ("eth0", ("10.0.0.7", "fd00:1::7")), ("eth1", ("fd00:1:1::7",))
    ]  # fmt: skip
    assert within(told, EnrolmentSettings().allows) == told


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ((link(1), link(0)), "the first of links is the interface"),
        ((link(0, addresses=("10.9.0.7",)),), "has no address 10.0.0.7"),
        ((link(0), link(1, interface="eth0")), "a name, a MAC address and addresses of its own"),
        ((link(0), link(1, mac=mac(0))), "a name, a MAC address and addresses of its own"),
        ((link(0), link(1, addresses=("10.0.0.7",))), "a name, a MAC address and addresses of its own"),
        ((link(0), link(1, addresses=("fe80::1",))), "valid on one link alone"),
        ((link(0), *(link(n, addresses=tuple(f"10.9.{n}.{k}" for k in range(16))) for n in range(1, 5))), "the most"),
    ],
)
def test_links_that_do_not_fit_together_are_refused(links: tuple[dict[str, Any], ...], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        request(links=links)


def test_a_request_without_any_address_is_refused() -> None:
    with pytest.raises(ValidationError, match="neither addresses nor links"):
        ipv6_only(links=())


def test_where_each_interface_is_survives_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path / "journal")
    world.ask("h7", request())
    world.approve("h7")
    world.announce("h7", mac(0), Site(1, 5))
    world.announce("h7", mac(1), Site(2, 5))
    before = world.enrolments.find("h7")
    assert world.store.write(in_steps(world.store.dequeue_in_steps())) is None
    world.store.settle(None)
    world.store.close()
    again = World(tmp_path / "journal")
    assert again.enrolments.find("h7") == before and again.sites("h7") == [Site(1, 5), Site(2, 5)]
