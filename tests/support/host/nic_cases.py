"""What ``host_reporter.nic.interface.Nic`` does to an interface; each case runs as a process inside a namespace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from host_reporter.nic.interface import Nic, NicError
from host_reporter.nic.tree import HANDLE, htb_tree


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
    assert len(_tc("class", "show", "dev", interface).splitlines()) == 4 + 1, (
        "two leaves and the other's under one, and the signature"
    )
    nic.apply(1e8, (8, 16), 0.01, 0.1)
    nic.apply(1e8, (8, 16, 24), 0.01, 0.1)
    assert len(_tc("class", "show", "dev", interface).splitlines()) == 5 + 1, "the tree follows the plan"
    nic.remove()
    assert _qdiscs(interface) == before


def left_behind(interface: str) -> None:
    """An agent is killed, the next one has another plan, is killed too; the third one is stopped."""
    before = _qdiscs(interface)
    for plan in ((8, 16), (8, 16, 24)):
        Nic(interface, None).apply(1e8, plan, 0.01, 0.1)
        assert len(_tc("class", "show", "dev", interface).splitlines()) == len(plan) + 3
    nic = Nic(interface, None)
    nic.apply(1e8, (8, 16, 24), 0.01, 0.1)
    nic.remove()
    assert _qdiscs(interface) == before


def killed(interface: str) -> None:
    """The guard gives the interface back; where that is killed too, whoever runs it later does."""
    before = _qdiscs(interface)
    program = f"""
import time
from host_reporter.nic.interface import Nic
nic = Nic({interface!r}, None)
nic.apply(1e8, (8,), 0.01, 0.1)
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
