"""What ``host_reporter.marking.iptables.Marker`` does to a host; each case runs as a process inside a namespace.

Arguments: the variants of iptables to use, and the peer's address. Another process listens there on port 9 (discard).
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time

from controller.code_points import CLASS_SELECTORS, POOL_2
from controller.wire import Mark
from host_reporter.marking import iptables
from host_reporter.marking.iptables import IptablesError, Marker

VARIANT, PEER = sys.argv[1], sys.argv[2]
FIRST = POOL_2.acknowledgements


def mark(job: str, dscp: int, *, remote: str | None = PEER, remote_port: int | None = None) -> Mark:
    return Mark(job=job, service_class=0, dscp=dscp, remote=remote, remote_port=remote_port)


def send(count: int, dscp: int = 0) -> None:
    """``dscp``: what the program sets itself, as any may."""
    with socket.socket() as peer:
        peer.settimeout(10)
        peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        peer.connect((PEER, 9))
        peer.sendall(bytes(count))
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)


def saved() -> str:
    done = subprocess.run([f"{VARIANT}-save", "-t", "mangle"], check=True, capture_output=True)
    return done.stdout.decode(errors="replace")


def say(word: str) -> None:
    """In step with the test, which looks at what arrived meanwhile."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()
    sys.stdin.readline()


def sent(marker: Marker) -> dict[str, float]:
    return {job: its.bytes for job, its in marker.sent_bytes().items()}


def main() -> None:
    iptables.VARIANTS = (VARIANT,)
    # Others' rules may have comments in any encoding.
    foreign = [VARIANT, "-t", "mangle", "-A", "FORWARD", "-m", "comment", "--comment", b"caf\xe9"]
    subprocess.run(foreign, check=True)
    marker = Marker()
    # Without a mark no program's own claim on a class is believed; what is none of ours is left alone.
    marker.apply(())
    for own, arrives in ((59, 0), (11, 0), (FIRST, 0), (46, 46)):
        send(10_000, own)
        say(f"dscp {arrives} {arrives}")
    assert marker.sent_bytes() == {}
    assert marker.marks_acknowledgements
    # The first that matches decides.
    marker.apply((mark("a", 10, remote_port=9), mark("b", 12, remote_port=None)))
    send(100_000)
    say(f"dscp 10 {FIRST}")
    first = sent(marker)
    assert 100_000 < first["a"] < 150_000, first
    assert first.get("b", 0) == 0, first
    assert marker.is_marking
    marker.apply((mark("b", 12), mark("a", 34, remote_port=9)))
    assert 0 <= sent(marker)["a"] - first["a"] < 500, "the count lives on over a change of the marks"
    send(50_000)
    say(f"dscp 12 {FIRST}")
    marker.apply((mark("a", 34, remote_port=9),))
    send(50_000)
    say(f"dscp 34 {FIRST}")
    assert first["a"] + 50_000 < sent(marker)["a"] < first["a"] + 100_000
    assert "b" not in sent(marker)
    before = sent(marker)["a"]
    marker.apply((mark("a", 18, remote_port=9),))
    send(50_000)
    say(f"dscp 18 {FIRST}")
    assert before + 50_000 < sent(marker)["a"] < before + 100_000, "a new class counts on"
    # Changes may be seldom: whoever makes them must not have fallen asleep.
    time.sleep(6.0)
    # While nobody says what goes first all traffic is alike; the counts live on.
    before = sent(marker)["a"]
    marker.open()
    send(50_000, 59)
    say("dscp 0 0")
    marker.apply((mark("a", 34, remote_port=9),))
    send(50_000, 59)
    say(f"dscp 34 {FIRST}")
    assert before + 50_000 < sent(marker)["a"] < before + 100_000, "and what left without a mark is not counted"
    # Somebody flushes the tables.
    for command in (("-D", "OUTPUT", "-j", "TRAINYARD"), ("-F", "TRAINYARD-CLEAR")):
        subprocess.run([VARIANT, "-t", "mangle", *command], check=True)
    assert marker.changed() == (
        "the jump from OUTPUT to TRAINYARD was gone",
        "all rules of chain TRAINYARD-CLEAR (8) were gone",
    )
    marker.put_back()
    assert marker.changed() == ()
    assert saved().count("-j TRAINYARD\n") == 1
    assert saved().count("TRAINYARD-CLEAR -m dscp") == 8, saved()
    held = saved()
    for remote in ("10.0.0.1\n-A OUTPUT -j DROP", "::1", "example.com"):
        try:
            marker.apply((mark("a", 10, remote=remote),))
        except IptablesError as error:
            assert "IPv4" in str(error)
        else:
            raise AssertionError(f"{remote!r} was taken")
    assert "OUTPUT -j DROP" not in saved()
    assert "--set-dscp 0x22" in saved(), f"what held before still holds: {held}"
    # Other programs use these DSCPs, too, so nobody's is cleared; packets without data have that of class 0.
    marker.apply((mark("a", 48, remote_port=9),), CLASS_SELECTORS)
    send(50_000, 8)
    say("dscp 48 56")
    marker.apply((), CLASS_SELECTORS)
    send(10_000, 48)
    say("dscp 48 48")
    assert not marker.marks_acknowledgements
    # A killed agent leaves its chain; the next one takes it over.
    second = Marker()
    second.apply((mark("a", 14, remote_port=9),))
    assert saved().count("-j TRAINYARD\n") == 1
    send(1000)
    say(f"dscp 14 {FIRST}")
    second.apply(())
    send(1000, 59)
    say("dscp 0 0")
    second.remove()
    assert not second.marks_acknowledgements
    assert "TRAINYARD" not in saved(), saved()
    assert "caf" in saved()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main()
