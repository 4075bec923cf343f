"""The messages on what a host's interfaces have carried, and how much of it no TCP connection explains."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from controller.wire.base import PRINTABLE_PATTERN, Bytes, Message

MAX_INTERFACES = 64
"""Let a host tell of this many interfaces."""

InterfaceKind = Literal["network", "rdma"]
InterfaceLabel = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=PRINTABLE_PATTERN)]


class InterfaceTraffic(Message):
    """Bytes of an interface since the agent began to count, while jobs ran. It replaces what was told before.

    A byte is unseen that no TCP connection on the host explains: UDP, RDMA, a tunnel, or the TCP of a container or
    virtual machine whose sockets the agent does not see. No mark gives it a class, unless
    a job declares it (protocol) and the host's kernel sends it.
    """

    interface: InterfaceLabel
    """The name of the interface, such as eth0, or of an RDMA device and its port, such as mlx5_0:1."""
    kind: InterfaceKind
    """network: an interface of Linux's network. rdma: a port of an RDMA device, whose bytes are RDMA alone."""
    sent: Bytes = 0.0
    """The bytes that were sent, with their headers."""
    received: Bytes = 0.0
    """The bytes that were received, with their headers."""
    unseen_sent: Bytes = 0.0
    """The bytes that were sent and that no connection explains, at least, while there was a rate of them."""
    unseen_received: Bytes = 0.0
    """The same of the bytes that were received."""
    unseen_sent_rate: Bytes | None = None
    """How many bytes a second are sent that no connection explains, over half a minute. It is renewed when it has
    doubled or halved. null: too few to tell."""
    unseen_received_rate: Bytes | None = None
    """The same of the bytes that are received."""
