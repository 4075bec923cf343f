"""What the app needs before it can start: settings for the dataplane, free ports, limits, and a clean end."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import resource
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import eventlet

from controller.config.config import Config, is_loopback
from controller.config.dscp_costs import costs
from controller.config.values import socket_name
from controller.dataplane.values import Settings
from controller.model import Host, server_of
from controller.rules.fabric import as_links
from controller.rules.pipeline import Endpoint

LOG = logging.getLogger("trainyard")
CONFIG_VARIABLE = "TRAINYARD_CONFIG"
WANTED_FILES = 16_384
"""Allow this many open files, enough for all hosts and switches; shells usually start programs with 1024."""
LARGE_JOURNAL_BYTES = 16 * 2**20
"""Log that the journal is being read if it is this large: then it takes about a second."""
COLLECT_AFTER = (20_000, 0, 1_000_000)
"""Objects, and collections of the young and of the middle generation, after which the next older one is collected.

The first number is above the objects that a plan of a thousand jobs makes, so that not every plan has a collection.
With the second, every other collection takes the middle generation, too. So a walk goes through 40,000 objects at most,
in 20 ms; with 50,000 and 5 it took 0.1 s, for which nothing else ran. The third is never reached.
"""
COLLECT_SECONDS = 3600.0
"""Collect everything this often. It takes 0.1 to 0.25 s with 4,000 jobs, and all requests wait for it."""


class StartError(RuntimeError):
    """The controller cannot start; the message says why, and what would help."""


def end(status: int, message: str) -> NoReturn:
    """Write why the controller cannot run, and exit."""
    sys.stderr.write("".join(f"trainyard: {line}\n" for line in message.splitlines()))
    raise SystemExit(status)


def config_path() -> Path | None:
    """Returns the settings file that the environment names."""
    name = os.environ.get(CONFIG_VARIABLE)
    return Path(name) if name else None


def dataplane_settings(config: Config, hosts: Mapping[str, Host]) -> Settings:
    """Returns the dataplane's part of the settings. ``hosts`` are all hosts, those that have enrolled included."""
    places = {
        name: (host.switch, host.switch_port)
        for name, host in hosts.items()
        if host.switch is not None and host.switch_port is not None
    }
    rates = {place: hosts[name].ingress_bps for name, place in places.items()}
    for link in config.links:
        if link.rate_bps is not None:
            rates |= dict.fromkeys(((link.a, link.a_port), (link.b, link.b_port)), link.rate_bps)
    return Settings(
        classes=config.classes,
        queue_numbers=config.lossless.priorities if config.lossless is not None else (),
        code_points=config.dscp.code_points(config.classes),
        queues=config.queues,
        ovsdb=config.ovsdb,
        job_floor=config.floors.job_class,
        other_floor=config.floors.other,
        gate_seconds=config.gate_seconds,
        probe=config.probe,
        rates_bps=rates,
        links=as_links(config.links),
        only_observes=not config.enforcement.switches,
        untrusted=frozenset(place for name, place in places.items() if server_of(name) in config.untrusted_hosts),
        control_ports=frozenset((each.switch, each.port) for each in config.control_traffic.ports),
        control_share=config.control_traffic.share,
    )


def control_endpoints(config: Config) -> tuple[Endpoint, ...]:
    """Returns the controller's own sockets that hosts and switches may reach through the network that it orders.

    Where it listens on all addresses, ``control_addresses`` alone names them.
    """
    endpoints = {}
    for listener in (config.api, config.openflow):
        own = (listener.host,) if _is_one_address(listener.host) else ()
        advertised = () if is_loopback(listener.host) else config.control_addresses
        if listener.port:
            endpoints.update(dict.fromkeys(Endpoint(address, listener.port) for address in (*own, *advertised)))
    return tuple(endpoints)


def _is_one_address(host: str) -> bool:
    if is_loopback(host):
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # A link-local address has the interface of this machine in its name, which means nothing to a switch.
    return not (address.is_unspecified or address.is_link_local)


def free_port(what: str, host: str, port: int) -> int:
    """Returns ``port``, or a free one for 0. Raises StartError where another program listens there already.

    The servers themselves would silently share a port with others, so this tries it first, without sharing.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
            trial.listen(1)
            return int(trial.getsockname()[1])
    except OSError as error:
        reason = error.strerror or str(error)
        where = socket_name(host, port)
        raise StartError(f"{what} cannot listen on {where}: {reason}; name another host or port") from error


def raise_file_limit() -> int:
    """Raise the limit of open files to WANTED_FILES, or to the hard limit; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = WANTED_FILES if hard == resource.RLIM_INFINITY else min(WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < possible:
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    return possible if soft == resource.RLIM_INFINITY else max(soft, possible)


def warn_of_open_listener(config: Config) -> None:
    """Warn where somebody who reaches the OpenFlow port could pass for a switch."""
    openflow = config.openflow
    if openflow.is_exposed:
        LOG.warning(
            "openflow.insecure is true: switches connect to %s without TLS; set openflow.tls",
            socket_name(openflow.host, openflow.port),
        )
        if not openflow.switches:
            LOG.warning(
                "whoever reaches %s may pass for a switch; name the switches' addresses in openflow.switches",
                socket_name(openflow.host, openflow.port),
            )


def warn_of_readable_tokens(config: Config) -> None:
    """Warn where others can read the API's tokens on their way."""
    if config.api.is_readable:
        LOG.warning(
            "the API listens on %s without TLS: tokens can be read on their way; set api.tls_certificate and "
            "api.tls_key",
            socket_name(config.api.host, config.api.port),
        )


def warn_of_no_journal(config: Config) -> None:
    """Warn where nothing is kept over a restart."""
    if config.journal is None:
        LOG.warning("journal is not set: jobs, settings and progress are gone when the controller ends")


def log_what_is_left_alone(config: Config) -> None:
    """Log what the settings do not let the controller touch."""
    enforcement = config.enforcement
    if enforcement.observes:
        LOG.warning("the controller only observes (enforce is empty): switches and hosts are left as they are")
    elif not enforcement.switches:
        LOG.info("switches are left as they are: enforce does not name switches")
    elif not enforcement.hosts:
        LOG.info("hosts are left as they are: enforce does not name hosts")


def log_what_the_dscps_cost(config: Config) -> None:
    """Log what the chosen DSCPs cost."""
    for sentence in costs(config):
        LOG.info("dscp: %s", sentence)


def log_large_journal(config: Config) -> None:
    """Log where the API answers only after a large journal is read."""
    try:
        size = config.journal.stat().st_size if config.journal is not None else 0
    except OSError:  # it does not exist yet
        return
    if size >= LARGE_JOURNAL_BYTES:
        LOG.info("reading the journal, which has %d MB; the API answers after that", size >> 20)


def steady_the_interpreter(collect_seconds: float = COLLECT_SECONDS) -> None:
    """Keep Python's own pauses out of the control loop.

    Modules that are loaded by now stay, so no collection walks through them again. A walk through the histories of a
    thousand jobs takes as long as a plan of them, and plans leave no cycles behind. So everything is collected once in
    ``collect_seconds``, and not when a request happens to need memory. A thread that makes a plan or writes the journal
    yields to the one that talks to switches within a millisecond instead of five.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    sys.setswitchinterval(0.001)
    eventlet.spawn(_collect_now_and_then, collect_seconds)


def _collect_now_and_then(seconds: float) -> None:
    while True:
        eventlet.sleep(seconds)
        gc.collect()
