"""The parts of the controller that take other settings while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from controller.access.callers import Callers
from controller.access.certificates.contexts import CertificateError, TlsContext
from controller.api import ApiServer, ServerError, Services
from controller.config.config import Config, ConfigError
from controller.dataplane.peers.listener import Peers
from controller.dataplane.plane import Dataplane
from controller.endpoints.servers import Servers
from controller.loop.loop import Loop
from controller.model import Host
from controller.process.callers import callers_of
from controller.process.startup import dataplane_settings
from controller.refusals import Invalid
from controller.registry.registry import Registry
from controller.reload.difference import Change
from controller.reload.part import Prepare, Prepared

HostsOf = Callable[[Config], Mapping[str, Host]]
"""Returns all hosts that there are with other settings."""


def of_loop(loop: Loop) -> Prepare:
    """Returns the part that plans: its policy must work with the present jobs."""
    return lambda config: Prepared(loop.prepare(config))


def of_dataplane(dataplane: Dataplane, hosts_of: HostsOf) -> Prepare:
    """Returns the part that keeps queues and rules."""

    def prepare(config: Config) -> Prepared:
        # At the moment of the change: a host may be approved until then.
        return Prepared(lambda: dataplane.change(dataplane_settings(config, hosts_of(config))))

    return prepare


def of_registry(registry: Registry, hosts_of: HostsOf) -> Prepare:
    """Returns the part that knows the jobs. A host on which a job runs must stay."""

    def prepare(config: Config) -> Prepared:
        hosts = hosts_of(config)
        busy = registry.jobs_on(registry.servers.keys() - Servers(hosts))
        if busy:
            raise Invalid(
                [
                    ("hosts", f"{host} is gone, but {_names(jobs)} on it; remove the job first (DELETE /v1/jobs)")
                    for host, jobs in busy.items()
                ]
            )

        def change() -> None:
            registry.change_hosts(hosts, config.lease_seconds)
            registry.change_points(config.code_points)

        return Prepared(change)

    return prepare


def _names(jobs: list[str]) -> str:
    shown = ", ".join(jobs[:5]) + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")
    return f"job {shown} runs" if len(jobs) == 1 else f"jobs {shown} run"


def of_callers(services: Services, config: Config) -> Prepare:
    """Returns the part that finds out who calls. ``config`` are the settings now. Open requests go on.

    An API that asks for a token goes on asking: a file that was emptied by mistake opens it to nobody.
    """
    oidc = config.api.oidc

    def prepare(config: Config) -> Prepared:
        before = services.callers
        if not (before.is_open or config.api.is_guarded):
            raise Invalid([("api", _UNGUARDED)])
        # The keys of a provider that stays are kept.
        callers = callers_of(
            config.api, config.host_names, before.oidc if config.api.oidc == oidc else None, enrolled=before.enrolled
        )

        def use() -> None:
            nonlocal oidc
            services.callers, oidc = callers, config.api.oidc

        return Prepared(use, _token_changes(before, callers))

    return prepare


_UNGUARDED = "no token is set any more, and everybody at this machine would be an operator; only a restart can do that"


def _token_changes(before: Callers, after: Callers) -> tuple[Change, ...]:
    """Returns the entries of the tokens file that differ."""
    old, new = _entries(before), _entries(after)
    return tuple(
        Change(f"api.tokens_file:{name}", old.get(name), new.get(name))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    )


def _entries(callers: Callers) -> Mapping[str, Any]:
    return callers.table.facts if callers.table is not None else {}


def of_peers(peers: Peers) -> Prepare:
    """Returns the part that decides who may connect as a switch."""

    def prepare(config: Config) -> Prepared:
        use_files = _nothing
        if peers.handshakes is not None and config.openflow.tls is not None:
            use_files = _checked(partial(peers.handshakes.prepare, config.openflow.tls.certificates))

        def use() -> None:
            use_files()
            peers.admission.change(config.openflow.switches)

        return Prepared(use)

    return prepare


def of_databases(tls: TlsContext | None) -> Prepare:
    """Returns the TLS to the databases of the switches."""

    def prepare(config: Config) -> Prepared:
        certificates = config.database_certificates
        if tls is None or certificates is None:
            return Prepared(_nothing)
        return Prepared(_checked(partial(tls.prepare, certificates)))

    return prepare


def of_server(server: ApiServer) -> Prepare:
    """Returns the part that speaks TLS with the clients of the API."""
    return lambda config: Prepared(_checked(partial(server.prepare, config.api)))


def _checked(prepare: Callable[[], Callable[[], None]]) -> Callable[[], None]:
    """Returns what ``prepare`` does. Raises ConfigError for files that cannot be used."""
    try:
        return prepare()
    except (CertificateError, ServerError) as error:
        raise ConfigError(str(error)) from error


def _nothing() -> None:
    """Change nothing."""
