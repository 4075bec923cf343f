"""The servers of the settings: their interfaces, with addresses, rates and places in the network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from controller.config.values import Section
from controller.model import Host
from controller.wire import Name
from controller.wire.addresses import (
    MAX_ADDRESSES,
    MAX_SERVER_INTERFACES,
    AnyAddress,
    Dpid,
    InterfaceName,
    Mac,
    PortNumber,
    Rate,
)


class Attachment(Section):
    """An interface, its link, and the switch port that it is connected to."""

    name: str
    """Its name."""
    address: AnyAddress | None = None
    """The address of the interface in the network that is ordered, IPv4 or IPv6. It needs address or addresses."""
    addresses: Annotated[tuple[AnyAddress, ...], Field(strict=False, max_length=MAX_ADDRESSES)] = ()
    """All further addresses of the interface there, IPv4 and IPv6: also those of VLAN interfaces on it."""
    ingress_bps: Rate = 1e9
    """The rate of its link towards the host, in bit/s."""
    egress_bps: Rate = 1e9
    """The rate of its link from the host, in bit/s."""
    switch: Dpid | None = None
    """The datapath id of its switch: a number, or hexadecimal text as Open vSwitch prints it."""
    port: PortNumber | None = None
    """The OpenFlow port number at its switch. It needs switch. A bond of several cables has none."""
    mac: Mac | None = None
    """The MAC address of the interface. By it switches know frames that are not IP, such as those of RoCEv1, and IPv6
    between link-local addresses. With forwarding: paths these go to the host by it."""

    @property
    def every_address(self) -> tuple[str, ...]:
        """All addresses, in the order in which they are given."""
        return self.addresses if self.address is None else (self.address, *self.addresses)

    def endpoint(self, name: str, interface: str | None) -> Host:
        """Returns the interface as the model has it."""
        first = next((address for address in self.every_address if ":" not in address), None)
        return Host(
            name=name,
            ingress_bps=self.ingress_bps,
            egress_bps=self.egress_bps,
            address=first,
            switch=self.switch,
            switch_port=self.port,
            more_addresses=tuple(address for address in self.every_address if address != first),
            mac=self.mac,
            interface=interface,
        )

    @field_validator("port")
    @classmethod
    def _port_has_a_switch(cls, port: int | None, info: ValidationInfo) -> int | None:
        if port is not None and "switch" in info.data and info.data["switch"] is None:
            raise ValueError("a port needs its switch; set switch too")
        return port


class InterfaceEntry(Attachment):
    """An interface of a server that has several, its link, and the switch port that it is connected to."""

    name: InterfaceName
    """The name of the interface on the server, such as eth0. Of a bond it is the bond's."""

    @model_validator(mode="after")
    def _has_an_address(self) -> Self:
        if not self.every_address:
            raise ValueError(f"interface {self.name} has no address; set address or addresses")
        return self


class HostEntry(Attachment):
    """A server, its link, and the switch port that it is connected to. A server with several interfaces in the network
    that is ordered has interfaces in the place of the fields from address to mac."""

    name: Name
    """The name of the host. Its agent and the jobs use the same name."""
    interfaces: Annotated[tuple[InterfaceEntry, ...], Field(strict=False, max_length=MAX_SERVER_INTERFACES)] = ()
    """The interfaces of the server in the network that is ordered. The first ones of two servers belong together, and
    so on: where both have as many, what a job declares to send runs between these."""

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The interfaces; of a server that has one and no name for it, the server itself."""
        return self.interfaces or (self,)

    def label(self, attachment: Attachment) -> str:
        """Returns the name by which an interface is known: the server's where it is the only one."""
        return f"{self.name}/{attachment.name}" if len(self.attachments) > 1 else self.name

    def endpoints(self) -> Iterator[Host]:
        """Yields the interfaces as the model has them."""
        for each in self.attachments:
            yield each.endpoint(self.label(each), each.name if each is not self else None)

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        own = [name for name in Attachment.model_fields if name != "name" and name in self.model_fields_set]
        if self.interfaces and own:
            raise ValueError(f"{self.name} has interfaces, so {', '.join(own)} must be in each of these")
        if not self.interfaces and not self.every_address:
            raise ValueError(f"{self.name} has no address; set address, addresses or interfaces")
        return self


class Plug(NamedTuple):
    """An interface of a server in the settings, with the name by which it is known."""

    host: HostEntry
    label: str
    attachment: Attachment

    @property
    def place(self) -> tuple[int, int] | None:
        """The datapath id and the port that it is connected to; None: not known."""
        switch, port = self.attachment.switch, self.attachment.port
        return (switch, port) if switch is not None and port is not None else None


def plugs(hosts: Iterable[HostEntry]) -> tuple[Plug, ...]:
    """Returns the interfaces of all servers."""
    return tuple(Plug(host, host.label(each), each) for host in hosts for each in host.attachments)


def check_differ(hosts: Iterable[HostEntry]) -> None:
    """Raises ValueError where two servers have one name, or two interfaces have one address, MAC address or port."""
    servers = list(hosts)
    _check_each([("name", host.name, host.name) for host in servers])
    for host in servers:
        _check_each([("interface name", f"{host.name}'s {each.name}", each.name) for each in host.interfaces])
    of_all = plugs(servers)
    _check_each([("address", plug.label, address) for plug in of_all for address in plug.attachment.every_address])
    _check_each([("MAC address", plug.label, plug.attachment.mac) for plug in of_all])
    _check_each([("switch port", plug.label, plug.place) for plug in of_all])


def _check_each(claims: Iterable[tuple[str, str, object]]) -> None:
    """Raises ValueError where two have the same of something; None is nothing."""
    taken: dict[object, str] = {}
    for word, label, value in claims:
        if value is None:
            continue
        if value in taken:
            raise ValueError(f"{label} and {taken[value]} have the same {word}; each needs its own")
        taken[value] = label
