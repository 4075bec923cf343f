"""Hosts that enrol, by a real controller: who may ask and who decides, and what changes with the decision."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.access.tokens.hashes import new_token
from tests.support.controller.api.cases import assert_problem, batch
from tests.support.controller.api.event_reader import EventReader
from tests.support.controller.api.roles_yard import RolesYard
from tests.support.controller.api.samples import Samples

TOKENS = {number: new_token() for number in range(4, 30)}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    folder = tmp_path_factory.mktemp("hosts")
    yard = RolesYard(folder, enrolment={"networks": ["10.0.0.0/16"]}, journal=str(folder / "journal"))
    try:
        yield yard.start()
    finally:
        yard.stop()


@pytest.fixture
def yard(shared: RolesYard) -> Iterator[RolesYard]:
    yield shared
    for host in listed(shared).values():
        if host["state"] != "listed":
            assert shared.call("DELETE", f"/v1/hosts/{host['name']}?force=true").status_code == 204


def request(number: int, **changed: Any) -> dict[str, Any]:
    told = {
        "addresses": [f"10.0.0.{number}"],
        "interface": "eth0",
        "mac": f"02:00:00:00:00:{number:02x}",
        "egress_bps": 25e9,
        "ingress_bps": 25e9,
        "token_sha256": hashlib.sha256(TOKENS[number].encode()).hexdigest(),
    }
    return {"request": told | changed}


def ask(yard: RolesYard, number: int, **changed: Any) -> Any:
    return yard.by("rack", "PUT", f"/v1/hosts/h{number}", request(number, **changed))


def decide(yard: RolesYard, number: int, state: str, **told: Any) -> Any:
    return yard.call("PUT", f"/v1/hosts/h{number}", {"decision": {"state": state} | told})


def listed(yard: RolesYard) -> dict[str, Any]:
    return {host["name"]: host for host in yard.call("GET", "/v1/hosts").json()["hosts"]}


def on_h7() -> dict[str, Any]:
    return {"tasks": [{"role": "ps", "host": "h7", "port": 5000}, {"role": "worker", "host": "h2"}]}


def report(yard: RolesYard, number: int) -> Any:
    return yard.call("POST", f"/v1/hosts/h{number}/reports", batch(), TOKENS[number])


def rail(number: int, **changed: Any) -> dict[str, Any]:
    told = {
        "interface": f"eth{number}",
        "addresses": [f"10.0.{number}.7", f"fd00:{number + 1}::7"],
        "mac": "02:00:00:00:00:07" if number == 0 else f"02:00:00:00:0{number}:07",
        "egress_bps": 25e9,
        "ingress_bps": 25e9,
    }
    return told | changed


def test_a_host_with_several_interfaces_takes_part_with_each(yard: RolesYard) -> None:
    outside = rail(2, addresses=["192.0.2.7"])
    assert ask(yard, 7, links=[rail(0), rail(1), outside]).status_code == 201
    waiting = listed(yard)["h7"]
    assert [link["interface"] for link in waiting["links"]] == ["eth0", "eth1"], "an address is in no allowed network"
    assert (waiting["mac"], waiting["switch"], waiting["egress_bps"]) == (None, None, 50e9)
    assert waiting["addresses"] == ["10.0.0.7", "10.0.1.7"], "nor are the IPv6 addresses"
    assert decide(yard, 7, "approved", switch=1, port=7).json()["links"][0]["port"] == 7
    plan = yard.call("GET", "/v1/hosts/h7/plan", token=TOKENS[7]).json()
    assert [each["name"] for each in plan["interfaces"]] == ["eth0", "eth1"]
    peers = yard.call("GET", "/v1/hosts/h7/peers", token=TOKENS[7], headers={"Prefer": "every-address"}).json()
    assert peers["interfaces"] == {"10.0.0.7": "eth0", "10.0.1.7": "eth1"}
    assert [link["interface"] for link in listed(yard)["h7"]["links"]] == ["eth0", "eth1"]
    assert yard.call("DELETE", "/v1/hosts/h7").status_code == 204
    assert "h7" not in listed(yard)


def test_an_interface_with_what_another_host_has_is_refused(yard: RolesYard) -> None:
    assert ask(yard, 7, links=[rail(0), rail(1)]).status_code == 201 and decide(yard, 7, "approved").ok
    taken = rail(1, interface="eth1", mac="02:00:00:00:09:08")
    first = rail(0, addresses=["10.0.0.8"], mac="02:00:00:00:00:08")
    assert_problem(ask(yard, 8, links=[first, taken]), 409, "10.0.1.7 is taken")


def test_a_host_asks_waits_and_takes_part_once_it_is_approved(yard: RolesYard) -> None:
    first = ask(yard, 7)
    assert first.status_code == 201
    assert (first.json()["state"], first.json()["ask_again_seconds"]) == ("pending", 5.0)
    assert len(first.json()["announcement"]) == 32
    assert report(yard, 7).status_code == 401
    assert "h7" not in {host["name"] for host in yard.call("GET", "/v1/status").json()["hosts"]}
    assert_problem(yard.call("PUT", "/v1/jobs/a", on_h7()), 422, "h7")
    assert decide(yard, 7, "approved").json()["decided_by"] == "night"
    assert ask(yard, 7).json()["state"] == "approved"
    assert report(yard, 7).status_code == 200
    assert yard.call("GET", "/v1/hosts/h7/plan", token=TOKENS[7]).json()["egress_bps"] == 25e9
    assert yard.call("GET", "/v1/hosts/h1/plan", token=TOKENS[7]).status_code == 404
    assert yard.call("PUT", "/v1/jobs/a", on_h7()).status_code == 201
    host = listed(yard)["h7"]
    assert (host["state"], host["agent"], host["addresses"]) == ("approved", "reporting", ["10.0.0.7"])


def test_a_host_that_waits_is_told_nothing_of_others_and_may_do_nothing(yard: RolesYard) -> None:
    ask(yard, 7)
    ask(yard, 8, addresses=["10.0.0.7"])
    told = ask(yard, 7).json()
    assert (told["problems"], told["asked_from"], told["decided_by"]) == ([], None, None)
    for method, path in (("GET", "/v1/hosts/h7/plan"), ("GET", "/v1/hosts"), ("GET", "/v1/caller")):
        assert yard.call(method, path, token=TOKENS[7]).status_code == 401


def test_the_enrolment_token_decides_nothing_and_reports_nothing(yard: RolesYard) -> None:
    ask(yard, 7)
    body = {"decision": {"state": "approved"}}
    assert_problem(yard.by("rack", "PUT", "/v1/hosts/h7", body), 403, "an operator decides")
    for method, path, sent in (
        ("DELETE", "/v1/hosts/h7", None),
        ("GET", "/v1/hosts", None),
        ("POST", "/v1/hosts/h7/reports", batch()),
    ):
        assert_problem(yard.by("rack", method, path, sent), 403, "has the role enrol, which may only ask to add a host")


def test_the_enrolment_token_cannot_take_over_a_host_that_was_approved(yard: RolesYard) -> None:
    ask(yard, 7)
    decide(yard, 7, "approved")
    stolen = ask(yard, 7, token_sha256=hashlib.sha256(TOKENS[9].encode()).hexdigest())
    assert_problem(stolen, 409, "has asked already, with another token")
    assert report(yard, 7).status_code == 200
    assert yard.call("POST", "/v1/hosts/h7/reports", batch(), TOKENS[9]).status_code == 401


@pytest.mark.parametrize(
    ("number", "changed", "status", "said"),
    [
        (8, {"addresses": ["10.0.0.1"]}, 409, "the address 10.0.0.1 is taken"),
        (8, {"addresses": ["192.168.0.8"]}, 422, "in none of the networks"),
        (8, {"addresses": ["127.0.0.1"]}, 422, "the address of no single server"),
        (8, {"addresses": []}, 422, "request: it has neither addresses nor links"),
        (8, {"mac": "01:00:5e:00:00:01"}, 422, "the address of no single interface"),
        (8, {"interface": "../x"}, 422, "request.interface"),
        (8, {"egress_bps": 0.0}, 422, "request.egress_bps"),
        (8, {"state": "approved"}, 422, "request.state"),
    ],
)
def test_what_a_host_cannot_ask_for(
    yard: RolesYard, number: int, changed: dict[str, Any], status: int, said: str
) -> None:
    assert_problem(ask(yard, number, **changed), status, said)
    assert f"h{number}" not in listed(yard)


def test_a_body_that_another_process_parses_is_the_same(yard: RolesYard) -> None:
    padded = json.dumps(request(7)).replace("{", "{" + " " * 10_000, 1)
    headers = {"Authorization": f"Bearer {yard.tokens['rack']}", "Content-Type": "application/json"}
    reply = yard.session.put(f"{yard.url}/v1/hosts/h7", padded, headers=headers, timeout=30)
    assert reply.status_code == 201, reply.text
    assert reply.json()["addresses"] == ["10.0.0.7"]
    decision = {"decision": {"state": "approved", "switch": "a1", "port": 3}}
    padded = json.dumps(decision).replace("{", "{" + " " * 10_000, 1)
    headers["Authorization"] = f"Bearer {yard.tokens['night']}"
    reply = yard.session.put(f"{yard.url}/v1/hosts/h7", padded, headers=headers, timeout=30)
    assert reply.json()["switch"] == f"{0xA1:016x}", reply.text


def test_a_host_of_the_settings_neither_asks_nor_is_decided_nor_removed(yard: RolesYard) -> None:
    asked = yard.by("rack", "PUT", "/v1/hosts/h1", request(7))
    assert_problem(asked, 409, "h1 is a host of the settings")
    assert_problem(decide(yard, 1, "approved"), 409, "h1 is a host of the settings")
    assert_problem(yard.call("DELETE", "/v1/hosts/h1"), 409, "h1 is a host of the settings; remove it there")
    assert listed(yard)["h1"]["state"] == "listed"


def test_a_refused_host_is_told_so_and_may_ask_anew_once_it_is_removed(yard: RolesYard) -> None:
    ask(yard, 7)
    assert decide(yard, 7, "refused").json()["state"] == "refused"
    again = ask(yard, 7)
    assert (again.status_code, again.json()["state"], again.json()["announcement"]) == (200, "refused", None)
    assert yard.call("DELETE", "/v1/hosts/h7").status_code == 204
    assert ask(yard, 7).json()["state"] == "pending"
    assert_problem(yard.call("DELETE", "/v1/hosts/h9"), 404, "no host h9 has asked")


def test_a_host_with_jobs_is_removed_only_by_force(yard: RolesYard) -> None:
    ask(yard, 7)
    decide(yard, 7, "approved")
    assert yard.call("PUT", "/v1/jobs/a", on_h7()).ok
    assert_problem(yard.call("DELETE", "/v1/hosts/h7"), 409, "jobs run on h7: a; let them end, or force it")
    assert report(yard, 7).status_code == 200
    assert_problem(yard.call("DELETE", "/v1/hosts/h7?force=yes"), 422, "neither true nor false")
    assert yard.call("DELETE", "/v1/hosts/h7?force=true").status_code == 204
    assert yard.call("GET", "/v1/jobs/a").status_code == 404
    assert report(yard, 7).status_code == 401
    assert "h7" not in listed(yard)


def test_what_was_asked_and_decided_is_in_the_audit_and_asking_again_is_not(yard: RolesYard) -> None:
    before = yard.call("GET", "/v1/audit").json()["newest"]
    ask(yard, 7)
    ask(yard, 7)
    decide(yard, 7, "approved", egress_bps=10e9)
    ask(yard, 7)
    yard.call("DELETE", "/v1/hosts/h7")
    records = yard.call("GET", f"/v1/audit?since={before}").json()["records"]
    told = [(each["who"], each["action"], each["outcome"]) for each in records if "hosts" in each["action"]]
    put = "PUT /v1/hosts/{host}"
    assert told == [("rack", put, "done"), ("night", put, "done"), ("night", "DELETE /v1/hosts/{host}", "done")]
    decision = records[-2]
    assert (decision["before"]["state"], decision["after"]["state"]) == ("pending", "approved")
    assert (decision["before"]["egress_bps"], decision["after"]["egress_bps"]) == (25e9, 10e9)
    assert "token_sha256" not in str(records)


def test_metrics_count_hosts_by_what_was_decided(yard: RolesYard) -> None:
    for number in (7, 8, 9, 10):
        ask(yard, number)
    decide(yard, 7, "approved")
    decide(yard, 8, "refused")
    found = Samples(yard.call("GET", "/metrics").text)
    assert found.by("state", "trainyard_enrolments") == {"pending": 2, "approved": 1, "refused": 1}
    assert found.value("trainyard_hosts", agent="none") == 4


def test_a_restart_changes_nothing(yard: RolesYard) -> None:
    for number in (7, 8, 9):
        ask(yard, number)
    decide(yard, 7, "approved", switch="0000000000000009", port=3)
    decide(yard, 8, "refused")
    before = listed(yard)
    assert yard.call("PUT", "/v1/jobs/a", on_h7()).ok
    yard.stop()
    yard.start()
    assert {name: host | {"agent": "none"} for name, host in listed(yard).items()} == before
    assert yard.call("GET", "/v1/jobs/a").json()["state"] == "waiting"
    assert report(yard, 7).status_code == 200


def test_a_reload_keeps_approved_hosts_and_one_that_takes_their_place_waits_for_their_jobs(yard: RolesYard) -> None:
    ask(yard, 7)
    decide(yard, 7, "approved")
    assert yard.call("PUT", "/v1/jobs/a", on_h7()).ok
    hosts = yard.settings["hosts"]
    try:
        yard.settings["hosts"] = [*hosts, {"name": "new", "address": "10.0.0.7"}]
        yard.write()
        assert_problem(yard.call("POST", "/v1/reload"), 422, "h7 is gone, but job a runs on it")
        yard.settings["hosts"] = [*hosts, {"name": "new", "address": "10.0.0.70"}]
        yard.write()
        assert yard.call("POST", "/v1/reload").ok
        assert report(yard, 7).status_code == 200
        assert {"new", "h7"} <= listed(yard).keys()
        assert_problem(ask(yard, 8, addresses=["10.0.0.70"]), 409, "the address 10.0.0.70 is taken")
    finally:
        yard.settings["hosts"] = hosts
        yard.write()
        assert yard.call("POST", "/v1/reload").ok


def test_where_enrolment_is_not_set_nobody_asks_and_who_was_approved_stays(yard: RolesYard) -> None:
    ask(yard, 7)
    decide(yard, 7, "approved")
    settings = yard.settings.pop("enrolment")
    try:
        yard.write()
        assert yard.call("POST", "/v1/reload").ok
        assert_problem(ask(yard, 8), 409, "the settings let no host enrol")
        assert report(yard, 7).status_code == 200
    finally:
        yard.settings["enrolment"] = settings
        yard.write()
        assert yard.call("POST", "/v1/reload").ok


def test_events_tell_of_hosts_that_ask(yard: RolesYard) -> None:
    # No other test has h9: what a host was and became again between two looks is no event.
    reader = EventReader(yard.port, token=yard.tokens["board"])

    def wait_for(state: str) -> None:
        reader.wait("host", lambda data: (data["name"], data["state"]) == ("h9", state))

    try:
        ask(yard, 9)
        wait_for("pending")
        decide(yard, 9, "approved")
        wait_for("silent")
        report(yard, 9)
        wait_for("alive")
        yard.call("DELETE", "/v1/hosts/h9")
        wait_for("removed")
    finally:
        reader.close()


def test_hosts_enrol_without_any_list(tmp_path: Path) -> None:
    yard = RolesYard(tmp_path, hosts="enrol")
    yard.write_tokens("night", "rack")
    try:
        yard.start()
        assert listed(yard) == {}
        ask(yard, 7)
        decide(yard, 7, "approved")
        assert report(yard, 7).status_code == 200
        assert yard.call("GET", "/v1/network").json()["hosts"][0]["name"] == "h7"
    finally:
        yard.stop()
