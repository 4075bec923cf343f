"""A network namespace for real launchers: their daemons listen on all addresses, and nobody else shall reach them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

from evaluation.bench.support.hosts.own_namespace import own_namespace

ADDRESS = "10.0.0.1"
"""This host's address there, which launchers find as its network: names are not resolved where only loopback is."""


@contextlib.contextmanager
def launchers_namespace() -> Iterator[None]:
    """Be in it, with what this thread starts."""
    with own_namespace():
        for command in (
            "ip link add eth0 type veth peer name eth0-end",
            f"ip address add {ADDRESS}/24 dev eth0",
            "ip link set eth0-end up",
            "ip link set eth0 up",
        ):
            subprocess.run(command.split(), check=True)
        yield
