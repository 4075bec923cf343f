"""``trainyard hosts``: the hosts, those that ask to be added, and what an operator decides on them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from controller.cli.output import CommandError, fail, show_beside, show_document, show_table

if TYPE_CHECKING:
    from controller.cli.client import Client
    from controller.wire import HostDecision, HostView

PATH = "/v1/hosts"
Connect = Callable[[argparse.Namespace], "Client"]
_STATES = {"approve": "approved", "refuse": "refused"}
_TOLD = ("address", "switch", "port", "rate_bps")


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser("hosts", parents=[remote], help="the hosts, and those that ask to be added")
    add = parser.add_argument
    add("action", nargs="?", choices=[*_STATES, "remove"], help="decide on hosts that ask, or remove hosts")
    add("names", nargs="*", metavar="NAME", help="the hosts")
    add("--all", action="store_true", help="all that wait; to approve, those without problems")
    add("--address", metavar="IP", help="with approve: the host's address in the network that is ordered")
    add("--switch", metavar="DPID", help="with approve: the datapath id of the host's switch")
    add("--port", metavar="N", type=int, help="with approve: the OpenFlow port number at its switch")
    add("--rate-bps", metavar="N", type=float, help="with approve: the rate of its link in both directions, in bit/s")
    add("--force", action="store_true", help="with remove: also where jobs run on the host, which are removed too")
    parser.set_defaults(run=lambda options: run_hosts(options, connect))


def run_hosts(options: argparse.Namespace, connect: Connect) -> int:
    """Show all hosts, or decide on some, or remove some."""
    _check(options)
    client = connect(options)
    if options.action is None:
        return _list(client, options)
    if options.action == "remove":
        return _each(options.names, lambda name: client.delete(_path(name), {"force": "true"} if options.force else {}))
    decision, views = _decision(options), []
    names = [*options.names, *(_waiting(client, options.action) if options.all else [])]
    status = _each(names, lambda name: views.append(_decide(client, name, decision)))
    return _show(views, is_json=options.json) or status


def _check(options: argparse.Namespace) -> None:
    """Raises CommandError for options that do not fit together."""
    if options.action is not None and not options.names and not options.all:
        raise CommandError(f"hosts {options.action}: name the hosts", 2)
    if options.all and (options.action not in _STATES or options.names):
        raise CommandError("hosts: --all is for approve and refuse, without names", 2)
    if options.force and options.action != "remove":
        raise CommandError("hosts: --force is for remove", 2)
    told = [name for name in _TOLD if getattr(options, name) is not None]
    if told and (options.action != "approve" or len(options.names) != 1):
        raise CommandError(f"hosts: --{told[0].replace('_', '-')} is for approve, with one NAME", 2)


def _list(client: Client, options: argparse.Namespace) -> int:
    from controller.wire import HostList

    answer = client.get(PATH, HostList)
    if options.json:
        return show_document(answer)
    return show_table(("host", "state", "agent", "address", "rate", "at", "problems"), map(_row, answer.hosts))


def _waiting(client: Client, action: str) -> list[str]:
    """Returns the hosts that wait and on which nothing has to be looked at; says which are left out."""
    from controller.wire import HostList

    waiting = [host for host in client.get(PATH, HostList).hosts if host.state == "pending"]
    left_out = [host for host in waiting if host.problems and action == "approve"]
    for host in left_out:
        show_beside(f"{host.name} is left out: {'; '.join(host.problems)}")
    return [host.name for host in waiting if host not in left_out]


def _decision(options: argparse.Namespace) -> HostDecision:
    from pydantic import ValidationError

    from controller.wire import HostDecision

    told = {
        "state": _STATES[options.action],
        "address": options.address,
        "switch": options.switch,
        "port": options.port,
        "ingress_bps": options.rate_bps,
        "egress_bps": options.rate_bps,
    }
    try:
        return HostDecision.model_validate(told)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(map(str, fault["loc"])) or "hosts"
        raise CommandError(f"{field}: {fault['msg'].removeprefix('Value error, ')}", 2) from None


def _decide(client: Client, name: str, decision: HostDecision) -> HostView:
    from controller.wire import HostPut, HostView

    return client.put(_path(name), HostPut(decision=decision), HostView)


def _each(names: Iterable[str], act: Callable[[str], object]) -> int:
    """Do the same for each host; a refusal is said, and the others go on. Returns the exit status."""
    status = 0
    for name in names:
        try:
            act(name)
        except CommandError as error:
            status = max(status, fail(f"{name}: {error}", error.status))
    return status


def _show(views: list[HostView], *, is_json: bool) -> int:
    from controller.wire import HostList

    if is_json:
        return show_document(HostList(hosts=tuple(views)))
    return show_table(("host", "state", "agent", "address", "rate", "at", "problems"), map(_row, views)) if views else 0


def _path(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"


def _place(host: HostView) -> str:
    """Returns where a host is attached; of one with several interfaces, where each is."""
    if not host.links:
        return f"{host.switch}:{host.port}" if host.switch is not None else "-"
    known = (f"{link.switch}:{link.port}" if link.switch is not None else "-" for link in host.links)
    return ", ".join(f"{link.interface} {at}" for link, at in zip(host.links, known, strict=True))


def _row(host: HostView) -> tuple[str, ...]:
    return (
        host.name,
        host.state,
        host.agent,
        ", ".join(host.addresses) or "-",
        f"{host.ingress_bps / 1e9:g} Gbit/s{'' if host.is_rate_known else ' (not told)'}",
        _place(host),
        "; ".join(host.problems) or "-",
    )
