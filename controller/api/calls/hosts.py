"""The calls on hosts: who there is, who asks to be added, and what an operator decides."""

from __future__ import annotations

from http import HTTPStatus

from controller.access.caller import Role
from controller.api.bodies.body import read_host
from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.api.unseen import Unseen
from controller.enrolment.record import Enrolment
from controller.model import Host
from controller.refusals import Invalid
from controller.wire import HostDecision, HostLink, HostList, HostPut, HostRequest, HostView, InterfaceTraffic

FIRST_ASK_SECONDS = 5.0
WAITING_A_SECOND = 50
"""Let hosts that wait ask again so often in all, each after FIRST_ASK_SECONDS at least."""


def list_hosts(services: Services, _call: Call) -> Reply:
    """List the hosts of the settings, and those that have asked to be added."""
    listed, unseen = services.hosts.listed.names, Unseen.now(services.registry)
    of_settings = (_listed(services, name, of) for name, of in services.registry.servers.items() if name in listed)
    asked = (view_of(services, each) for each in services.hosts.enrolments if each.name not in listed)
    return Reply.of(HostList(hosts=tuple(_with_traffic(services, view, unseen) for view in (*of_settings, *asked))))


def put_host(services: Services, call: Call) -> Reply:
    """Ask to add a host, or approve or refuse one that has asked."""
    put: HostPut = read_host(services, call)
    name = call.path["host"]
    if put.decision is not None:
        return _decide(services, call, name, put.decision)
    assert put.request is not None
    return _ask(services, call, name, put.request)


def delete_host(services: Services, call: Call) -> Reply:
    """Forget a host that has asked to be added, also one that was approved."""
    is_forced = call.query.get("force", "false")
    if is_forced not in ("true", "false"):
        raise Invalid([("force", f"{is_forced[:20]!r} is neither true nor false")])
    services.hosts.remove(call.path["host"], call.received_at, is_forced=is_forced == "true")
    services.journal.commit()
    return Reply(HTTPStatus.NO_CONTENT)


def view_of(services: Services, enrolment: Enrolment) -> HostView:
    """Returns a host that has asked, as operators see it."""
    (first, *more), told = enrolment.hosts(), enrolment.request
    found_by = (link.found_by for link in enrolment.links)
    return HostView(
        name=enrolment.name,
        state=enrolment.state,
        addresses=enrolment.addresses,
        mac=told.mac if not more else None,
        interface=told.interface if not more else None,
        ingress_bps=sum(host.ingress_bps for host in (first, *more)),
        egress_bps=sum(host.egress_bps for host in (first, *more)),
        is_rate_known=enrolment.is_rate_known,
        switch=_dpid(first) if not more else None,
        port=first.switch_port if not more else None,
        links=tuple(map(_link, (first, *more))) if more else (),
        found_by=next((each for each in found_by if each is not None), None),
        agent=services.registry.agent(enrolment.name) if enrolment.state == "approved" else "none",
        asked_at=enrolment.asked_at,
        asked_from=enrolment.asked_from,
        decided_at=enrolment.decided_at,
        decided_by=enrolment.decided_by,
        problems=services.hosts.problems(enrolment),
    )


def _listed(services: Services, name: str, interfaces: tuple[Host, ...]) -> HostView:
    first, *more = interfaces
    is_placed = any(host.switch_port is not None for host in interfaces)
    return HostView(
        name=name,
        state="listed",
        addresses=tuple(address for host in interfaces for address in host.addresses),
        mac=first.mac if not more else None,
        interface=first.interface if not more else None,
        ingress_bps=sum(host.ingress_bps for host in interfaces),
        egress_bps=sum(host.egress_bps for host in interfaces),
        switch=_dpid(first) if not more else None,
        port=first.switch_port if not more else None,
        found_by="settings" if is_placed else None,
        agent=services.registry.agent(name),
        links=tuple(map(_link, interfaces)) if more else (),
    )


def _link(host: Host) -> HostLink:
    return HostLink(
        interface=host.interface or host.name,
        addresses=host.addresses,
        mac=host.mac,
        ingress_bps=host.ingress_bps,
        egress_bps=host.egress_bps,
        switch=_dpid(host),
        port=host.switch_port,
    )


def _with_traffic(services: Services, view: HostView, unseen: Unseen) -> HostView:
    """Returns a host with what its interfaces carry."""
    interfaces = tuple(InterfaceTraffic(**part._asdict()) for part in services.registry.interfaces(view.name))
    return view.model_copy(update={"interfaces": interfaces, "problems": (*view.problems, *unseen.of_host(view.name))})


def _dpid(host: Host) -> str | None:
    return f"{host.switch:016x}" if host.switch is not None else None


def _ask(services: Services, call: Call, name: str, request: HostRequest) -> Reply:
    enrolments = services.hosts.enrolments
    is_new = enrolments.get(name) is None
    enrolment = services.hosts.ask(name, request, str(call.environ.get("REMOTE_ADDR", "")))
    services.journal.commit()
    is_looked_for = enrolments.is_looked_for(enrolment) and services.config.enforcement.switches
    # What a host is told has nothing of other hosts, and nothing of operators.
    told = view_of(services, enrolment).model_copy(
        update={
            "problems": (),
            "asked_from": None,
            "decided_by": None,
            "announcement": enrolment.announcement if is_looked_for else None,
            "ask_again_seconds": max(FIRST_ASK_SECONDS, enrolments.waiting / WAITING_A_SECOND),
        }
    )
    return Reply.of(told, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


def _decide(services: Services, call: Call, name: str, decision: HostDecision) -> Reply:
    if call.caller.role is not Role.OPERATOR:
        raise HttpError(HTTPStatus.FORBIDDEN, f"{call.caller.name} may ask to add a host; an operator decides")
    decided = services.hosts.decide(name, decision, call.caller.name)
    services.journal.commit()
    return Reply.of(view_of(services, decided))
