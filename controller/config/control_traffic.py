"""The section of the settings on the network's own control traffic, which goes before all jobs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from controller.config.values import Section
from controller.wire.addresses import Dpid, PortNumber

MOST_PORTS = 64
"""Limits the ports that are named, because each takes a meter and a rule."""


class ControlPort(Section):
    """A port of a switch."""

    switch: Dpid
    """The datapath id of the switch."""
    port: PortNumber
    """The OpenFlow port number."""


class ControlTraffic(Section):
    """From which ports control traffic goes before all jobs, and how much of it."""

    ports: Annotated[tuple[ControlPort, ...], Field(strict=False, max_length=MOST_PORTS)] = ()
    """The ports of routers and hosts whose BGP, OSPF, BFD, PTP and RoCE congestion notifications (UDP port 4791 with
    DSCP 48) are served with class 0. In a fabric, the ports between switches that they cross are named, too."""
    share: Annotated[float, Field(ge=0.0001, le=1)] = 0.01
    """The share of the port's rate that this traffic may take. The switch drops what exceeds it."""

    @field_validator("ports")
    @classmethod
    def _ports_differ(cls, ports: tuple[ControlPort, ...]) -> tuple[ControlPort, ...]:
        for i, port in enumerate(ports):
            if port in ports[:i]:
                raise ValueError(f"port {port.port} of switch {port.switch:#x} is named twice")
        return ports
