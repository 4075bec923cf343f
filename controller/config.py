"""The controller's settings: every one has a default, and every wrong one is refused with its file and line."""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from controller.classes import Assign
from controller.config_file import ConfigError, Document, describe, read_document
from controller.model import MAX_CLASSES, Host
from controller.policies.registry import PolicyError, make
from controller.wire import Name

__all__ = ["Api", "Config", "ConfigError", "Floors", "HostEntry", "LinkEntry", "OpenFlow", "load_config"]

MAX_DPID = 2**64 - 1
MIN_TOKEN = 8
GATE_PERIODS = 2.0
"""The gate's hard timeout must outlast so many periods, or a late renewal would drop the priorities."""


class Section(BaseModel):
    """Base of every part of the settings: immutable, no unknown keys, no silent type changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


def is_loopback(host: str) -> bool:
    """Whether ``host`` names this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _dpid(value: object) -> object:
    """A datapath id as a number, or as hexadecimal text as Open vSwitch prints it."""
    if isinstance(value, str):
        try:
            return int(value.replace(":", ""), 16)
        except ValueError as error:
            raise ValueError(
                f"{value!r} is no datapath id; it is a number or hexadecimal text such as '0000000000000001'"
            ) from error
    return value


def _section(value: object) -> object:
    """A section without settings has its defaults; what is no section is refused in plain words."""
    if value is None:
        return {}
    if not isinstance(value, Mapping | BaseModel):
        raise ValueError("it must be a mapping of settings, or be left out")
    return value


_DATABASE = re.compile(r"(tcp|unix):\S+")
"""``ssl:`` would need a key that there is no setting for, ``ptcp:`` and its like a switch that calls."""


def _databases(value: object) -> object:
    """The address of the switches' database, or a map with each switch's own."""
    if isinstance(value, Mapping):
        if not value:
            raise ValueError("it names no switch; give an address, or one for each switch: {1: tcp:10.0.0.1:6640}")
        found: dict[object, str] = {}
        for key, address in value.items():
            dpid = _dpid(key)
            if not isinstance(dpid, int) or not 1 <= dpid <= MAX_DPID:
                raise ValueError(f"{key!r} is no datapath id; it is from 1 to {MAX_DPID:x}, in hexadecimal")
            if dpid in found:
                raise ValueError(f"switch {dpid:#x} is named twice; each has one database")
            found[dpid] = _database(address)
        return found
    return _database(value)


def _database(address: object) -> str:
    if not isinstance(address, str) or not _DATABASE.fullmatch(address):
        raise ValueError(
            f"{str(address)[:40]!r} is no address of a database; it is written like tcp:10.0.0.1:6640 or "
            "unix:/var/run/openvswitch/db.sock"
        )
    return address


_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")


def _listening(host: str) -> str:
    """An address or a name to listen at; whether it is this machine's shows only at the start."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        looks_numeric = re.fullmatch(r"[0-9.]+", host) is not None
        if looks_numeric or not _HOST_NAME.fullmatch(host):
            raise ValueError(f"{host!r} is no address and no host's name; 127.0.0.1, or 0.0.0.0 for all") from None
        return host


def _host_address(address: str) -> str:
    """An IPv4 address that one server can have."""
    try:
        found = ipaddress.IPv4Address(address)
    except ValueError as error:
        raise ValueError(f"{address!r} is no IPv4 address; it is written like 10.0.0.1") from error
    if found.is_unspecified or found.is_loopback or found.is_multicast or found.is_reserved:
        raise ValueError(f"{address} is the address of no single server; it is written like 10.0.0.1")
    return str(found)


def _network(text: str) -> str:
    """Addresses of switches: one, or all of a network."""
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError as error:
        raise ValueError(f"{text!r} is no address or network; it is written like 10.0.0.7 or 10.0.0.0/24") from error


Listening = Annotated[str, AfterValidator(_listening)]
HostAddress = Annotated[str, AfterValidator(_host_address)]
AddressRange = Annotated[str, AfterValidator(_network)]
Dpid = Annotated[int, BeforeValidator(_dpid), Field(ge=1, le=MAX_DPID)]
PortNumber = Annotated[int, Field(ge=1, le=0xFFFFFF00)]
TcpPort = Annotated[int, Field(ge=0, le=65535)]
Rate = Annotated[float, Field(ge=1e3, le=1e13)]
Share = Annotated[float, Field(gt=0, lt=1)]


class Api(Section):
    """Where the REST API listens, and who may use it. ``port`` 0 takes a free one.

    ``host_jobs``: what a host's own token may register. whole: any job that the host takes part in, with its traffic
    between other hosts. own: only traffic that has the host at one end, and ports that it listens on itself.
    """

    host: Listening = "127.0.0.1"
    port: TcpPort = 8080
    token: SecretStr | None = None
    host_tokens: Annotated[dict[Name, SecretStr], Field(default_factory=dict)]
    host_jobs: Literal["whole", "own"] = "whole"
    tls_certificate: Annotated[Path, Field(strict=False)] | None = None
    tls_key: Annotated[Path, Field(strict=False)] | None = None

    @field_validator("token")
    @classmethod
    def _token_is_long(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None:
            _check_token(token)
        return token

    @field_validator("host_tokens")
    @classmethod
    def _host_tokens_differ(cls, tokens: Mapping[str, SecretStr], info: ValidationInfo) -> Mapping[str, SecretStr]:
        general = info.data.get("token")
        if tokens and "token" in info.data and general is None:
            raise ValueError("hosts have tokens but the API has none; set api.token too")
        seen = {general.get_secret_value(): "api.token"} if general else {}
        for host, token in tokens.items():
            _check_token(token)
            if other := seen.get(token.get_secret_value()):
                raise ValueError(f"{host} has the token of {other}; each needs its own")
            seen[token.get_secret_value()] = host
        return tokens

    @field_validator("tls_certificate", "tls_key")
    @classmethod
    def _file_can_be_read(cls, path: Path | None) -> Path | None:
        if path is not None:
            try:
                path.open("rb").close()
            except OSError as error:
                raise ValueError(f"{path} cannot be read: {error.strerror}") from error
        return path

    @field_validator("tls_key")
    @classmethod
    def _both_or_none(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        if "tls_certificate" in info.data and info.data["tls_certificate"] is None and key is not None:
            raise ValueError("a key needs its certificate; set api.tls_certificate too")
        certificate = info.data.get("tls_certificate")
        if key is not None and certificate is not None:
            try:
                # An empty password: where the key has one, nobody must be asked at a terminal.
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"the certificate {certificate} and the key {key} cannot be used together: {error}; "
                    "both are PEM files, the key without a password"
                ) from error
        return key


def _check_token(token: SecretStr) -> None:
    text = token.get_secret_value()
    if len(text) < MIN_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError(
            f"a token has at least {MIN_TOKEN} printable ASCII characters without spaces, "
            "such as the output of: openssl rand -hex 16"
        )


class OpenFlow(Section):
    """Where switches connect. ``switches``: the addresses that may connect as one; none named: any may."""

    host: Listening = "127.0.0.1"
    port: TcpPort = 6653
    switches: Annotated[tuple[AddressRange, ...], Field(strict=False, max_length=1024)] = ()


class Floors(Section):
    """Shares of a link that each job class, and all other traffic, keep when those above them are busy."""

    job_class: Share = 0.01
    other: Share = 0.10


class HostEntry(Section):
    """A server, its link and where it is plugged in."""

    name: Name
    address: HostAddress
    ingress_bps: Rate = 1e9
    egress_bps: Rate = 1e9
    switch: Dpid | None = None
    port: PortNumber | None = None

    @field_validator("port")
    @classmethod
    def _port_has_a_switch(cls, port: int | None, info: ValidationInfo) -> int | None:
        if port is not None and "switch" in info.data and info.data["switch"] is None:
            raise ValueError("a port needs its switch; set switch too")
        return port


class LinkEntry(Section):
    """A cable between two switches, by datapath id and port number; ``rate_bps`` of None: the ports' own speed."""

    a: Dpid
    a_port: PortNumber
    b: Dpid
    b_port: PortNumber
    rate_bps: Rate | None = None

    @field_validator("b")
    @classmethod
    def _joins_two_switches(cls, b: int, info: ValidationInfo) -> int:
        if b == info.data.get("a"):
            raise ValueError(f"switch {b:#x} is at both ends; a link joins two switches")
        return b


class Config(Section):
    """All settings of the controller. Seconds, bit/s; ``gate_seconds`` is how long switches keep the order alone.

    ``ovsdb``: where the switches' database answers, or where each one's does, by datapath id.
    ``control_addresses``: the controller's own addresses in the network that it orders, where it listens on all
    (0.0.0.0) or behind an address translation: traffic to and from them goes first.
    """

    policy: str = "jpas"
    policy_options: Annotated[dict[str, Any], BeforeValidator(_section), Field(default_factory=dict)]
    period_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 5.0
    gate_seconds: Annotated[int, Field(ge=1, le=65535, validate_default=True)] = 15
    classes: Annotated[int, Field(ge=1, le=MAX_CLASSES)] = MAX_CLASSES
    assign: Assign = "layered"
    mode: Literal["classified", "marked"] = "classified"
    forwarding: Literal["normal", "paths"] = "normal"
    queues: Literal["managed", "existing"] = "managed"
    floors: Annotated[Floors, BeforeValidator(_section), Field(default_factory=Floors, validate_default=True)]
    journal: Annotated[Path, Field(strict=False)] | None = None
    lease_seconds: Annotated[float, Field(ge=1, le=86400, validate_default=True)] = 30.0
    probe: bool = True
    hosts: Annotated[tuple[HostEntry, ...], Field(strict=False)] = ()
    links: Annotated[tuple[LinkEntry, ...], Field(strict=False)] = ()
    ovsdb: Annotated[str | dict[int, str], BeforeValidator(_databases)] = "unix:/var/run/openvswitch/db.sock"
    untrusted_hosts: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    control_addresses: Annotated[tuple[HostAddress, ...], Field(strict=False, max_length=64)] = ()
    openflow: Annotated[OpenFlow, BeforeValidator(_section), Field(default_factory=OpenFlow)]
    api: Annotated[
        Api, BeforeValidator(_section), Field(default_factory=lambda: Api(host_tokens={}), validate_default=True)
    ]

    @classmethod
    def default(cls) -> Self:
        """The settings of a controller without a file."""
        return cls.model_validate({})

    def host_map(self) -> dict[str, Host]:
        """The hosts by name, as the model has them."""
        return {
            entry.name: Host(
                name=entry.name,
                ingress_bps=entry.ingress_bps,
                egress_bps=entry.egress_bps,
                address=entry.address,
                switch=entry.switch,
                switch_port=entry.port,
            )
            for entry in self.hosts
        }

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
            make(policy)
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
        taken: dict[object, str] = {}
        for host in hosts:
            place = ("port", host.switch, host.port) if host.port is not None else None
            for key, word in ((host.name, "name"), (host.address, "address"), (place, "switch port")):
                if key is not None and (other := taken.get(key)) is not None:
                    raise ValueError(f"{host.name} and {other} have the same {word}; each needs its own")
                if key is not None:
                    taken[key] = host.name
            if info.data.get("forwarding") == "paths" and host.port is None:
                raise ValueError(f"{host.name} has no switch and port; forwarding: paths must know where each host is")
        return hosts

    @field_validator("links")
    @classmethod
    def _links_have_ports_of_their_own(
        cls, links: tuple[LinkEntry, ...], info: ValidationInfo
    ) -> tuple[LinkEntry, ...]:
        hosts = info.data.get("hosts", ())
        taken = {(host.switch, host.port): f"host {host.name}" for host in hosts if host.port is not None}
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
            places = [(host.switch, f"host {host.name}") for host in info.data["hosts"]]
            places += [(end, f"links[{i}]") for i, link in enumerate(info.data["links"]) for end in (link.a, link.b)]
            for dpid, whose in places:
                if dpid is not None and dpid not in ovsdb:
                    has = ", ".join(f"{known:#x}" for known in ovsdb)
                    raise ValueError(f"switch {dpid:#x} of {whose} has no address here; there are: {has} (hexadecimal)")
        return ovsdb

    @field_validator("untrusted_hosts")
    @classmethod
    def _untrusted_are_known(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        _check_known(names, info)
        for host in info.data.get("hosts", ()):
            if host.name in names and host.port is None:
                raise ValueError(f"where {host.name} is plugged in is not known; set its switch and port")
        return names

    @field_validator("api")
    @classmethod
    def _api_is_guarded(cls, api: Api, info: ValidationInfo) -> Api:
        if not is_loopback(api.host) and api.token is None:
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
        return api


def _check_known(names: tuple[str, ...], info: ValidationInfo) -> None:
    if "hosts" in info.data:
        known = [host.name for host in info.data["hosts"]]
        for name in names:
            if name not in known:
                raise ValueError(f"unknown host {name!r}; hosts has: {', '.join(known) or 'none'}")


def load_config(path: Path | None) -> Config:
    """The settings in the YAML file ``path``; None gives the defaults.

    Raises ConfigError, whose message has a line ``file:line: field: what is wrong; what would be right`` for
    each thing that is wrong.
    """
    document = Document(path) if path is None else read_document(path)
    try:
        return Config.model_validate(document.data)
    except ValidationError as error:
        raise ConfigError(describe(error, document, Config)) from None
