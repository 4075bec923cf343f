"""The least timeout of TCP on an emulated host's routes, as the kernel takes it in a namespace of its own."""

from __future__ import annotations

import json
import subprocess

from topologies.nodes import links_up

MAKE = "ip link add h1-eth0 type veth peer name peer && ip link set peer up && ip -batch - && "
SHOW = "ip -json -details {family} route show dev h1-eth0 proto kernel"


def routes(family: str, seconds: float) -> dict[str, list[float | None]]:
    """Returns the least timeouts, in milliseconds, of the routes to each subnet."""
    done = subprocess.run(
        ["unshare", "--net", "sh", "-ec", MAKE + SHOW.format(family=family)],
        input="\n".join(links_up({"h1-eth0": ("10.0.0.1", "fd00::1")}, 2, seconds)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[float | None]] = {}
    for route in json.loads(done.stdout):
        metrics = (route.get("metrics") or [{}])[0]
        found.setdefault(route["dst"], []).append(metrics.get("rto_min"))
    return found


def test_the_routes_that_the_kernel_made_are_replaced_and_none_is_added() -> None:
    assert routes("-4", 4.4) == {"10.0.0.0/24": [4400.0]}
    assert routes("-6", 4.4)["fd00::/64"] == [4400.0]
    assert routes("-4", 0.0) == {"10.0.0.0/24": [None]}
