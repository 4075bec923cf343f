"""Whatever hosts ask and operators decide, in any order: no two hosts have the same, and a restart changes nothing."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controller.config.config import Config
from controller.enrolment.claims import claims_of
from controller.enrolment.enrolments import KIND, Bounds, Enrolments
from controller.enrolment.listed import Listed
from controller.enrolment.record import Enrolment, Site
from controller.journal.bodies import EnrolmentBody
from controller.journal.store import Store
from controller.refusals import Refused
from controller.steps import in_steps
from controller.wire import HostDecision, HostRequest

LISTED = Listed.of(
    Config.model_validate({"hosts": [{"name": "n0", "address": "10.0.0.1", "switch": 1, "port": 1}], "enrolment": {}})
)
BOUNDS = Bounds(most_waiting=5, most_waiting_per_address=3)
few = st.integers(0, 3)
families = st.sampled_from(["10.0.0.", "fd00::"])


def asking(family: str, numbers: list[int], mac: int, token: int) -> HostRequest:
    """Returns the request of a host with addresses of one family."""
    addresses = tuple(dict.fromkeys(f"{family}{1 + number}" for number in numbers))
    own = {"interface": "eth0", "mac": f"02:00:00:00:00:0{mac}" if mac else None}
    told: dict[str, Any] = own | {"addresses": addresses, "token_sha256": f"{token:064x}"}
    if ":" in family:
        told |= {"addresses": (), "links": [own | {"addresses": addresses}]}
    return HostRequest.model_validate(told)


requests = st.builds(asking, families, st.lists(few, min_size=1, max_size=2), few, few)
decisions = st.builds(
    lambda state, site, family, address: HostDecision(
        state=state,
        address=f"{family}{1 + address}" if address else None,
        switch=1 if site else None,
        port=site or None,
    ),
    st.sampled_from(["approved", "refused"]),
    few,
    families,
    few,
)
steps = st.one_of(
    st.tuples(st.just("ask"), few, requests),
    st.tuples(st.just("decide"), few, decisions),
    st.tuples(st.just("locate"), few, few),
    st.tuples(st.just("remove"), few, st.none()),
)


def act(enrolments: Enrolments, kind: str, name: str, what: Any) -> None:
    with contextlib.suppress(Refused):
        match kind:
            case "ask":
                enrolments.ask(name, what, f"192.0.2.{name[1:]}", LISTED, BOUNDS)
            case "decide":
                enrolments.decide(name, what, "ann", LISTED)
            case "locate":
                known = enrolments.find(name)
                enrolments.locate(known.announcement, str(known.request.mac), Site(1, 1 + what), LISTED)
            case _:
                enrolments.remove(name)


def check(enrolments: Enrolments) -> None:
    held = dict(LISTED.holders)
    for host in enrolments:
        if host.state == "approved":
            for claim in claims_of(host):
                assert held.setdefault(claim, host.name) == host.name
            assert enrolments.host_of_token(host.request.token_sha256) == host.name
        else:
            assert enrolments.host_of_token(host.request.token_sha256) is None
    approved = {host.name for host in enrolments if host.state == "approved"}
    assert enrolments.hosts(LISTED).keys() == approved
    assert LISTED.names.isdisjoint(approved)
    assert sum(host.state != "approved" for host in enrolments) <= BOUNDS.most_waiting


@given(st.lists(steps, max_size=40))
def test_no_two_hosts_have_the_same_and_the_records_are_the_state(tried: list[tuple[str, int, Any]]) -> None:
    enrolments = Enrolments(Store(None), lambda: 0.0, lambda: 0.0)
    for kind, number, what in tried:
        act(enrolments, kind, f"n{number}", what)
        check(enrolments)
    for host in enrolments:
        text = host.to_body().model_dump_json()
        assert Enrolment.from_body(host.name, EnrolmentBody.model_validate_json(text)) == host


def test_the_kind_of_the_records_stays(tmp_path: Any) -> None:
    store = Store(tmp_path / "journal")
    Enrolments(store, lambda: 0.0, lambda: 0.0).ask(
        "n1", HostRequest(addresses=("10.0.0.9",), token_sha256="0" * 64), "192.0.2.1", LISTED, BOUNDS
    )
    batch = in_steps(store.dequeue_in_steps())
    assert list(batch.records) == [(KIND, "n1")] == [("enrolment", "n1")]
