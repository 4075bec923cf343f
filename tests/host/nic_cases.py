"""What ``host_reporter.nic.Nic`` does to an interface; each case runs as a process inside a namespace."""

from __future__ import annotations

import subprocess

from host_reporter.nic import Nic, NicError
from host_reporter.nic_tree import HANDLE, htb_tree


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
    nic.apply(1e8, (8, 16), 0.01, 0.1)
    assert f"qdisc htb {HANDLE}: root" in _tc("qdisc", "show", "dev", interface)
    assert len(_tc("class", "show", "dev", interface).splitlines()) == 4
    nic.apply(1e8, (8, 16), 0.01, 0.1)
    nic.apply(1e8, (8, 16, 24), 0.01, 0.1)
    assert len(_tc("class", "show", "dev", interface).splitlines()) == 5, "the tree follows the plan"
    nic.remove()
    assert _qdiscs(interface) == before


def adopted(interface: str) -> None:
    for line in htb_tree(interface, 1e8, (8,), 0.01, 0.1):
        _tc(*line.split())
    before = _qdiscs(interface)
    nic = Nic(interface, None)
    nic.apply(1e8, (8,), 0.01, 0.1)
    nic.remove()
    assert _qdiscs(interface) == before, "it was there before the agent came"
    _tc("qdisc", "del", "dev", interface, "root")


def foreign(interface: str) -> None:
    _tc("qdisc", "add", "dev", interface, "root", "handle", "9:", "htb")
    before = _qdiscs(interface)
    for nic, words in ((Nic(interface, None), "not ours"), (Nic("nosuch0", None), "nosuch0")):
        try:
            nic.apply(1e8, (8,), 0.01, 0.1)
        except NicError as error:
            assert words in str(error)
        else:
            raise AssertionError("no complaint")
        nic.remove()
    assert _qdiscs(interface) == before
    _tc("qdisc", "del", "dev", interface, "root")
