"""What ``host_reporter.nic.interface.Nic`` does to an interface; each case runs as a process inside a namespace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from controller.code_points import CLASS_SELECTORS, POOL_2, code_points
from host_reporter.nic.interface import Nic, NicError
from host_reporter.nic.tree import HANDLE, htb_tree

ONE, TWO, THREE = (code_points(classes, 63) for classes in ((8,), (8, 16), (8, 16, 24)))


def _tc(*arguments: str) -> str:
    return subprocess.run(["tc", *arguments], check=True, capture_output=True, text=True).stdout


def _qdiscs(interface: str) -> list[str]:
    """Kinds, handles and places; not the packets that passed meanwhile."""
    return [
        line.split(" default ")[0].split(" r2q ")[0] for line in _tc("qdisc", "show", "dev", interface).splitlines()
    ]


def made(interface: str) -> None:
    before = _qdiscs(interface)
    nic = Nic(interface, None)
    nic.apply(1e8, TWO, 0.01, 0.1)
    assert f"qdisc htb {HANDLE}: root" in _tc("qdisc", "show", "dev", interface)
    assert len(_tc("class", "show", "dev", interface).splitlines()) == 4 + 1, (
        "two leaves and the other's under one, and the signature"
    )
    nic.apply(1e8, TWO, 0.01, 0.1)
    nic.apply(1e8, THREE, 0.01, 0.1)
    assert len(_tc("class", "show", "dev", interface).splitlines()) == 5 + 1, "the tree follows the plan"
    nic.remove()
    assert _qdiscs(interface) == before


def left_behind(interface: str) -> None:
    """An agent is killed, the next one has another plan, is killed too; the third one is stopped."""
    before = _qdiscs(interface)
    for points in (TWO, THREE):
        Nic(interface, None).apply(1e8, points, 0.01, 0.1)
        assert len(_tc("class", "show", "dev", interface).splitlines()) == len(points.classes) + 3
    nic = Nic(interface, None)
    nic.apply(1e8, THREE, 0.01, 0.1)
    nic.remove()
    assert _qdiscs(interface) == before


def reordered(interface: str) -> None:
    """The jobs and their classes change: no process is needed for that, and what ``tc`` would make is there."""
    of_jobs = code_points((8, 16, 24), 63, jobs=(3, 46, 7))
    nic = Nic(interface, None)
    path = os.environ["PATH"]
    nic.apply(1e8, of_jobs.in_order({3: 0, 46: 1}), 0.01, 0.1)
    for order in ({3: 2, 46: 0}, {3: 1, 7: 0}, {}, {46: 2}, {3: 1, 46: 2, 7: 2}):
        os.environ["PATH"] = ""
        assert nic.apply(1e8, of_jobs.in_order(order), 0.01, 0.1) == ()
        os.environ["PATH"] = path
        assert nic.changed() == ()
        found = _leads(interface)
        fresh = Nic(interface, None)
        nic.remove()
        fresh.apply(1e8, of_jobs.in_order(order), 0.01, 0.1)
        assert _leads(interface) == found
        assert len(found) == 1 + 2 + 3 + 4 * (len(order) + 1), "ARP, neighbour discovery, DSCPs with and without a VLAN"
        nic = fresh
    _tc("filter", "del", "dev", interface, "protocol", "ip", "pref", "3")
    (was,) = nic.apply(1e8, of_jobs.in_order({3: 1, 46: 1, 7: 2}), 0.01, 0.1)
    assert (
        was == "the filter for DSCP 3, the filter for DSCP 7, the filter for DSCP 46, the filter for DSCP 63 were gone"
    )
    assert len(_leads(interface)) == len(found)
    nic.remove()


def _leads(interface: str) -> list[tuple[str, ...]]:
    """What is compared and where it leads: the preference, the leaf and the keys of each filter of the interface."""
    shown = _tc("filter", "show", "dev", interface)
    parts = re.split(r"^filter ", shown, flags=re.MULTILINE)
    leads = []
    for part in parts:
        if "flowid" in part:
            (pref,), (leaf,) = re.findall(r"pref (\d+)", part), re.findall(r"flowid (\S+)", part)
            leads.append((pref, leaf, *re.findall(r"match (.*)", part)))
    return sorted(leads)


def renumbered(interface: str) -> None:
    """A plan with other DSCPs has other filters."""
    nic = Nic(interface, None)
    for points in (POOL_2.first(2), CLASS_SELECTORS.first(2), POOL_2.first(2)):
        nic.apply(1e8, points, 0.01, 0.1)
        shown = _tc("filter", "show", "dev", interface, "parent", f"{HANDLE}:")
        assert sorted(int(found, 16) >> 18 for found in re.findall(r"match (\w{8})/00fc0000 at 0", shown)) == sorted(
            points.owned
        ), shown
        assert nic.changed() == ()
    nic.remove()


def killed(interface: str) -> None:
    """The guard gives the interface back; where that is killed too, whoever runs it later does."""
    before = _qdiscs(interface)
    program = f"""
import time
from controller.code_points import code_points
from host_reporter.nic.interface import Nic
nic = Nic({interface!r}, None)
nic.apply(1e8, code_points((8,), 63), 0.01, 0.1)
nic.watch()
print("made", flush=True)
time.sleep(60)
"""
    for is_guarded in (True, False):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as agent:
            assert agent.stdout is not None and agent.stdout.readline() == "made\n"
            assert _qdiscs(interface) != before
            (guard,) = map(int, Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split())
            if not is_guarded:
                os.kill(guard, signal.SIGKILL)
            agent.kill()
        if not is_guarded:
            time.sleep(1.0)
            assert _qdiscs(interface) != before
            subprocess.run([sys.executable, "-m", "host_reporter.nic.guard", interface], check=True)
        until = time.monotonic() + 10
        while _qdiscs(interface) != before:
            assert time.monotonic() < until, "it is not given back"
            time.sleep(0.05)


def adopted(interface: str) -> None:
    for line in htb_tree(interface, 1e8, ONE, 0.01, 0.1):
        _tc(*line.split())
    before = _qdiscs(interface)
    nic = Nic(interface, None)
    nic.apply(1e8, ONE, 0.01, 0.1)
    nic.remove()
    assert _qdiscs(interface) == before, "it was there before the agent came"
    _tc("qdisc", "del", "dev", interface, "root")


def foreign(interface: str) -> None:
    _tc("qdisc", "add", "dev", interface, "root", "handle", "9:", "htb")
    before = _qdiscs(interface)
    for nic, words in ((Nic(interface, None), "not ours"), (Nic("nosuch0", None), "nosuch0")):
        try:
            nic.apply(1e8, ONE, 0.01, 0.1)
        except NicError as error:
            assert words in str(error)
        else:
            raise AssertionError("no complaint")
        nic.remove()
    assert _qdiscs(interface) == before
    _tc("qdisc", "del", "dev", interface, "root")
