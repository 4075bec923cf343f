"""The controller's settings: every one has a default, and every wrong one is refused with its file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, field_validator, model_validator

from controller.access.certificates.contexts import Certificates
from controller.code_points import CodePoints
from controller.config.control_traffic import ControlTraffic
from controller.config.dscp import DscpSettings, as_dscp
from controller.config.enforcement import as_places, check_mode, check_places, with_both_names
from controller.config.enrolment import EnrolmentSettings
from controller.config.hosts import HostEntry, check_differ, plugs
from controller.config.lossless import LosslessSettings, check_fits, with_classes
from controller.config.sections import Api, Audit, Floors, LinkEntry, OpenFlow, Tls
from controller.config.values import (
    ENROL,
    Section,
    as_databases,
    as_hosts,
    as_optional_section,
    as_section,
    is_loopback,
)
from controller.documents.document import Document
from controller.documents.mapping_file import ConfigError, read_mapping, refusal
from controller.enforcement import PLACES, Enforcement, Identity, Mode, Place
from controller.model import MAX_CLASSES, Host
from controller.ordering.classes import Assign
from controller.policies.registry import PolicyError, check_name, make
from controller.wire import Name
from controller.wire.addresses import AnyAddress

__all__ = [
    "Api",
    "Audit",
    "Config",
    "ConfigError",
    "Floors",
    "HostEntry",
    "LinkEntry",
    "OpenFlow",
    "Tls",
    "is_loopback",
    "load_config",
]

GATE_PERIODS = 2.0
"""Require that the gate's hard timeout outlasts this many periods: else a late renewal would drop the priorities."""


class Config(Section):
    """All settings of the controller. Times are in seconds, rates in bit/s."""

    policy: str = "jpas"
    """The name of the policy that orders the jobs. It can change at run time (PATCH /v1/settings)."""
    policy_options: Annotated[
        dict[str, Any], BeforeValidator(as_section), Field(default_factory=dict, validate_default=True)
    ]
    """The options of the policy, by name. Each policy has its own."""
    period_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    """The longest time between two plans. A change that matters makes a plan at once."""
    gate_seconds: Annotated[int, Field(ge=1, le=65535, validate_default=True)] = 15
    """How long switches keep the order by themselves when the controller is gone. It must be more than two periods."""
    classes: Annotated[int, Field(ge=1, le=MAX_CLASSES)] = MAX_CLASSES
    """How many classes the order is cut into. The floors of all classes together must leave room in a link."""
    assign: Assign = "layered"
    """How the order is cut into classes. layered: jobs that share a port get different classes as far as possible. top:
    the first jobs get a class each, and all others share the last class."""
    identity: Identity = "flows"
    """How switches know a job. flows: by addresses and ports. classes: by the DSCP of its class, which hosts set, with
    one rule for each class. dscp: by a DSCP of its own, which it has for its life, and which each plan maps to a class,
    with one rule for each job. In all, other traffic between hosts with jobs has a class by its addresses."""
    mode: Mode = "classified"
    """The earlier name of identity: classified is flows, marked is classes, and dscp is dscp. One of the two is
    enough."""
    forwarding: Literal["normal", "paths"] = "normal"
    """Who finds the paths. normal: the switches, as learning switches. paths: the controller installs shortest paths;
    it needs the switch and port of every host."""
    enforce: Annotated[tuple[Place, ...], BeforeValidator(as_places), Field(strict=False)] = PLACES
    """Who enforces the order. switches: they get rules and queues. hosts: agents mark packets and order their
    interfaces. An empty list observes only: plans, reasons and status, and nothing is installed anywhere."""
    queues: Literal["managed", "existing"] = "managed"
    """Who makes the priority queues. managed: the controller, through the database of each switch. existing: the queues
    0 to 7 exist already."""
    floors: Annotated[Floors, BeforeValidator(as_section), Field(default_factory=Floors, validate_default=True)]
    """The shares of a link that each class always keeps."""
    journal: Annotated[Path, Field(strict=False)] | None = None
    """The file that keeps the state over restarts. Without it the state is in memory only."""
    lease_seconds: Annotated[float, Field(ge=1, le=86400, validate_default=True)] = 30.0
    """How long the jobs of a host stay in the plan after the last report of its agent. It must be at least one
    period."""
    probe: bool = True
    """Whether the queues of a switch are proven with test packets before the switch is used."""
    hosts: Annotated[tuple[HostEntry, ...], BeforeValidator(as_hosts), Field(strict=False)] = ()
    """The servers, their addresses and links. The word enrol in the place of the list stands for no list and for
    enrolment with its defaults."""
    links: Annotated[tuple[LinkEntry, ...], Field(strict=False)] = ()
    """The cables between switches. A link with a rate is a place where jobs are ordered."""
    enrolment: Annotated[EnrolmentSettings | None, BeforeValidator(as_optional_section)] = None
    """How hosts that are not in the list are added. Without it only the hosts of the list, and those that were approved
    before, take part."""
    ovsdb: Annotated[str | dict[int, str], BeforeValidator(as_databases)] = "unix:/var/run/openvswitch/db.sock"
    """The address of the database of the switches (tcp:ADDRESS:PORT, ssl:ADDRESS:PORT or unix:PATH), or a map from each
    switch's datapath id to its address."""
    untrusted_hosts: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    """Names of hosts whose marks switches never believe. The switch and port of each must be set."""
    control_traffic: Annotated[
        ControlTraffic, BeforeValidator(as_section), Field(default_factory=ControlTraffic, validate_default=True)
    ]
    """The ports from which routing protocols and clocks go before all jobs."""
    dscp: Annotated[DscpSettings, BeforeValidator(as_dscp), Field(default_factory=DscpSettings, validate_default=True)]
    """The DSCPs by which hosts and switches recognise classes and jobs: a section, or the name of a preset."""
    lossless: Annotated[LosslessSettings | None, BeforeValidator(as_optional_section)] = None
    """The priorities that carry PFC, where jobs must stay. It gives the number of classes. Without it classes have the
    queues from 1 on, and no queue is known to be lossless."""
    table_budget: Annotated[int, Field(ge=1, le=10_000_000)] = 4000
    """How many rules a switch may hold for the flows of jobs, and for their hosts. Where flows need more, hosts mark
    and switches match only the marks. Rules for hosts take the room that is left."""
    reload: Literal["requested", "automatic"] = "requested"
    """When a changed settings file is put in force. requested: by SIGHUP, trainyard reload or POST /v1/reload.
    automatic: when it has changed. Files that it names, such as certificates and tokens, are read again with it."""
    control_addresses: Annotated[tuple[AnyAddress, ...], Field(strict=False, max_length=64)] = ()
    """The controller's own addresses in the network that it orders, IPv4 and IPv6. Traffic to and from them goes first.
    They are needed where the controller listens on 0.0.0.0 or ::, or behind an address translation."""
    openflow: Annotated[OpenFlow, BeforeValidator(as_section), Field(default_factory=OpenFlow)]
    """Where switches connect."""
    ovsdb_tls: Annotated[Tls | None, Field(validate_default=True)] = None
    """The files for TLS to the databases of the switches (ssl:). Without it they are those of openflow.tls."""
    api: Annotated[
        Api, BeforeValidator(as_section), Field(default_factory=lambda: Api(host_tokens={}), validate_default=True)
    ]
    """The REST API."""
    audit: Annotated[Audit, BeforeValidator(as_section), Field(default_factory=Audit)]
    """The record of who has changed what."""

    @property
    def database_certificates(self) -> Certificates | None:
        """Returns the files for TLS to the switches' databases; None where no database is reached by TLS."""
        tls = self.ovsdb_tls or self.openflow.tls
        return tls.certificates if tls is not None and _by_tls(self.ovsdb) else None

    @property
    def enforcement(self) -> Enforcement:
        """Returns what these settings say of who enforces the order."""
        return Enforcement.of(self.enforce, self.identity)

    @property
    def code_points(self) -> CodePoints:
        """Returns the DSCPs of the classes that there are, or of jobs."""
        return self.dscp.code_points(self.classes, own=self.enforcement.has_own_dscps)

    @classmethod
    def default(cls) -> Self:
        """Returns the settings of a controller without a file."""
        return cls.model_validate({})

    @property
    def host_names(self) -> tuple[str, ...]:
        """Returns the names of the hosts."""
        return tuple(entry.name for entry in self.hosts)

    def host_map(self) -> dict[str, Host]:
        """Returns the interfaces of the hosts by name, as the model has them."""
        return {endpoint.name: endpoint for entry in self.hosts for endpoint in entry.endpoints()}

    @model_validator(mode="before")
    @classmethod
    def _enrolment_in_short(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        if given.get("hosts") == ENROL:
            given = {"enrolment": {}, **given, "hosts": []}
        if "enrolment" in given and given["enrolment"] is None:
            given = {**given, "enrolment": {}}
        return given

    @model_validator(mode="before")
    @classmethod
    def _lossless_priorities_are_the_classes(cls, given: Any) -> Any:
        return with_classes(given) if isinstance(given, Mapping) else given

    @field_validator("lossless")
    @classmethod
    def _lossless_fits(cls, lossless: LosslessSettings | None, info: ValidationInfo) -> LosslessSettings | None:
        if lossless is not None and {"classes", "dscp"} <= info.data.keys():
            check_fits(lossless, info.data["classes"], info.data["dscp"].pool)
        return lossless

    @model_validator(mode="before")
    @classmethod
    def _identity_has_two_names(cls, given: Any) -> Any:
        return with_both_names(given) if isinstance(given, Mapping) else given

    @field_validator("mode")
    @classmethod
    def _mode_is_the_identity(cls, mode: Mode, info: ValidationInfo) -> Mode:
        check_mode(mode, info.data.get("identity"))
        return mode

    @field_validator("enforce")
    @classmethod
    def _identity_is_of_switches(cls, places: tuple[Place, ...], info: ValidationInfo) -> tuple[Place, ...]:
        check_places(places, info.data.get("identity"))
        return places

    @field_validator("policy_options")
    @classmethod
    def _policy_can_be_made(cls, options: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        if "policy" in info.data:
            try:
                make(info.data["policy"], options)
            except PolicyError as error:
                raise ValueError(str(error)) from error
        return options

    @field_validator("policy")
    @classmethod
    def _policy_is_known(cls, policy: str) -> str:
        try:
            check_name(policy)
        except PolicyError as error:
            raise ValueError(str(error)) from error
        return policy

    @field_validator("gate_seconds")
    @classmethod
    def _gate_outlasts_periods(cls, gate: int, info: ValidationInfo) -> int:
        period = info.data.get("period_seconds")
        if period is not None and gate <= GATE_PERIODS * period:
            raise ValueError(
                f"the gate must outlast {GATE_PERIODS:g} periods; "
                f"with period_seconds {period:g} it is above {GATE_PERIODS * period:g}"
            )
        return gate

    @field_validator("lease_seconds")
    @classmethod
    def _lease_lasts_a_period(cls, lease: float, info: ValidationInfo) -> float:
        period = info.data.get("period_seconds")
        if period is not None and lease < period:
            raise ValueError(
                f"a lease of {lease:g} s would run out between two plans; with period_seconds {period:g} it is at "
                "least as long"
            )
        return lease

    @field_validator("journal")
    @classmethod
    def _journal_can_be_a_file(cls, journal: Path | None) -> Path | None:
        if journal is not None:
            try:
                if journal == Path() or journal.is_dir():
                    raise ValueError(
                        "it names a folder; a journal is a file, such as /var/lib/trainyard/journal.sqlite"
                    )
            except OSError as error:
                raise ValueError(f"it cannot be a file's name: {error.strerror}") from error
        return journal

    @field_validator("floors")
    @classmethod
    def _floors_leave_room(cls, floors: Floors, info: ValidationInfo) -> Floors:
        total = floors.job_class * info.data.get("classes", MAX_CLASSES) + floors.other
        if total > 1:
            raise ValueError(f"the floors of all classes together take {total:.2f} of a link; at most 1")
        return floors

    @field_validator("hosts")
    @classmethod
    def _hosts_differ(cls, hosts: tuple[HostEntry, ...], info: ValidationInfo) -> tuple[HostEntry, ...]:
        check_differ(hosts)
        for plug in plugs(hosts):
            if info.data.get("forwarding") == "paths" and plug.place is None:
                raise ValueError(f"{plug.label} has no switch and port; forwarding: paths must know where each host is")
        return hosts

    @field_validator("links")
    @classmethod
    def _links_have_ports_of_their_own(
        cls, links: tuple[LinkEntry, ...], info: ValidationInfo
    ) -> tuple[LinkEntry, ...]:
        hosts = info.data.get("hosts", ())
        taken = {plug.place: f"host {plug.label}" for plug in plugs(hosts) if plug.place is not None}
        for i, link in enumerate(links):
            for dpid, port in ((link.a, link.a_port), (link.b, link.b_port)):
                if other := taken.get((dpid, port)):
                    raise ValueError(f"port {port} of switch {dpid:#x} is that of {other} and of links[{i}]")
                taken[(dpid, port)] = f"links[{i}]"
        return links

    @field_validator("ovsdb")
    @classmethod
    def _databases_are_the_switches(
        cls, ovsdb: str | Mapping[int, str], info: ValidationInfo
    ) -> str | Mapping[int, str]:
        if isinstance(ovsdb, Mapping) and "hosts" in info.data and "links" in info.data:
            places = [(plug.attachment.switch, f"host {plug.label}") for plug in plugs(info.data["hosts"])]
            places += [(end, f"links[{i}]") for i, link in enumerate(info.data["links"]) for end in (link.a, link.b)]
            for dpid, whose in places:
                if dpid is not None and dpid not in ovsdb:
                    has = ", ".join(f"{known:#x}" for known in ovsdb)
                    raise ValueError(f"switch {dpid:#x} of {whose} has no address here; there are: {has} (hexadecimal)")
        return ovsdb

    @field_validator("openflow")
    @classmethod
    def _openflow_is_guarded(cls, openflow: OpenFlow) -> OpenFlow:
        if openflow.is_exposed and not openflow.insecure:
            raise ValueError(
                f"listens on {openflow.host}, which others can reach, without TLS; set openflow.tls (trainyard certs "
                "makes the files), or openflow.insecure to true"
            )
        if openflow.tls is not None and openflow.insecure:
            raise ValueError("insecure is for a port without TLS; set either tls or insecure")
        return openflow

    @field_validator("ovsdb_tls")
    @classmethod
    def _databases_have_certificates(cls, tls: Tls | None, info: ValidationInfo) -> Tls | None:
        if tls is None and "openflow" in info.data and info.data["openflow"].tls is None:
            secured = _by_tls(info.data.get("ovsdb", ""))
            if secured:
                raise ValueError(f"ovsdb has {secured}, which needs certificates; set ovsdb_tls or openflow.tls")
        return tls

    @field_validator("untrusted_hosts")
    @classmethod
    def _untrusted_are_known(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        _check_known(names, info)
        for plug in plugs(info.data.get("hosts", ())):
            if plug.host.name in names and plug.place is None:
                raise ValueError(f"where {plug.label} is plugged in is not known; set its switch and port")
        return names

    @field_validator("control_traffic")
    @classmethod
    def _control_ports_are_trusted(cls, control: ControlTraffic, info: ValidationInfo) -> ControlTraffic:
        named = {(each.switch, each.port) for each in control.ports}
        for plug in plugs(info.data.get("hosts", ())):
            if plug.host.name in info.data.get("untrusted_hosts", ()) and plug.place in named:
                switch, port = plug.place
                raise ValueError(
                    f"port {port} of switch {switch:#x} is that of {plug.label}, and untrusted_hosts names "
                    f"{plug.host.name}; leave one of them out"
                )
        return control

    @field_validator("dscp")
    @classmethod
    def _dscps_fit(cls, dscp: DscpSettings, info: ValidationInfo) -> DscpSettings:
        if "classes" in info.data:
            enforcement = Enforcement.of(info.data.get("enforce", ()), info.data.get("identity", "flows"))
            found = plugs(info.data.get("hosts", ())) if enforcement.is_by_dscp else ()
            unplaced = [plug.label for plug in found if plug.place is None]
            dscp.check_fits(info.data["classes"], unplaced, own=enforcement.has_own_dscps)
        return dscp

    @field_validator("api")
    @classmethod
    def _api_is_guarded(cls, api: Api, info: ValidationInfo) -> Api:
        if not is_loopback(api.host) and not api.is_guarded:
            raise ValueError(
                f"listens on {api.host}, which others can reach, without a token; "
                "set api.token, or api.host to 127.0.0.1"
            )
        if (api.tls_certificate is None) != (api.tls_key is None):
            raise ValueError("a certificate needs its key; set api.tls_certificate and api.tls_key")
        _check_known(tuple(api.host_tokens), info)
        openflow = info.data.get("openflow")
        if openflow is not None and openflow.port and openflow.port == api.port:
            raise ValueError(f"port {api.port} is that of openflow too; each needs its own")
        if api.metrics_port and api.metrics_port in (api.port, openflow.port if openflow is not None else None):
            raise ValueError(f"metrics_port {api.metrics_port} is that of another listener; each needs its own")
        return api


def _by_tls(ovsdb: str | Mapping[int, str]) -> str | None:
    """Returns the first address of a database that is reached by TLS."""
    addresses = (ovsdb,) if isinstance(ovsdb, str) else ovsdb.values()
    return next((address for address in addresses if address.startswith("ssl:")), None)


def _check_known(names: tuple[str, ...], info: ValidationInfo) -> None:
    if "hosts" in info.data:
        known = [host.name for host in info.data["hosts"]]
        for name in names:
            if name not in known:
                raise ValueError(f"unknown host {name!r}; hosts has: {', '.join(known) or 'none'}")


def load_config(path: Path | None) -> Config:
    """Returns the settings in the YAML file ``path``; None gives the defaults.

    Raises ConfigError, whose message has a line ``file:line: field: what is wrong; what would be right`` for
    each thing that is wrong.
    """
    return checked(path, read_mapping(path)) if path is not None else Config.default()


def checked(path: Path, document: Document) -> Config:
    """Returns the settings in a document, which was read from the file ``path``. Raises ConfigError."""
    try:
        return Config.model_validate(document.data)
    except ValidationError as error:
        raise refusal(path, document, error, Config) from None
