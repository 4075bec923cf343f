"""Marks on a real cable, by real iptables: the DSCP that arrives, the bytes counted, nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.support.host.two_hosts import RECEIVER, two_hosts

# Takes connections on port 9 and prints, for each line on stdin, the DSCPs of the packets that came meanwhile: of those
# with data, and of those without (what opens a connection or acknowledges; not what ends it).
_PEER = """
import json, select, socket, sys, threading
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
server = socket.create_server(("0.0.0.0", 9))
def serve():
    while True:
        peer, _ = server.accept()
        while peer.recv(65536):
            pass
        peer.close()
threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    seen = set(), set()
    while select.select([raw], [], [], 0.1)[0]:
        packet, where = raw.recvfrom(65536)
        if where[2] == socket.PACKET_OUTGOING or packet[9] != 6:
            continue
        header = (packet[0] & 15) * 4
        data = len(packet) - header - (packet[header + 12] >> 4) * 4
        if data > 0 or not packet[header + 13] & 5:
            seen[data == 0].add(packet[1] >> 2)
    print(json.dumps([*map(sorted, seen)]), flush=True)
"""


def _works(variant: str) -> bool:
    with two_hosts() as hosts:
        return hosts.run(hosts.sender, variant, "-t", "mangle", "-N", "TRY").returncode == 0


def test_marks_arrive_are_counted_and_are_taken_away() -> None:
    variants = [variant for variant in ("iptables-legacy", "iptables-nft") if _works(variant)]
    assert variants, "neither variant of iptables works in this kernel"
    # Beside each other, because for most of the time they wait.
    with ThreadPoolExecutor() as pool:
        list(pool.map(_cases, variants))


def _cases(variant: str) -> None:
    with (
        two_hosts() as hosts,
        subprocess.Popen(
            hosts.command(hosts.receiver, sys.executable, "-c", _PEER),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as peer,
        subprocess.Popen(
            hosts.command(hosts.sender, sys.executable, "-m", "tests.support.host.marking_cases", variant, RECEIVER),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as cases,
    ):
        try:
            assert peer.stdin and peer.stdout and cases.stdin and cases.stdout and cases.stderr
            assert peer.stdout.readline() == "ready\n"
            steps = []
            while (line := cases.stdout.readline().strip()).startswith("dscp"):
                peer.stdin.write("\n")
                peer.stdin.flush()
                expected = [[int(dscp)] for dscp in line.split()[1:]]
                assert json.loads(peer.stdout.readline()) == expected, f"{variant}, step {len(steps)}"
                steps.append(line)
                cases.stdin.write("\n")
                cases.stdin.flush()
            assert line == "done", f"{variant} after {steps}: {cases.stderr.read()}"
            assert len(steps) == 14
        finally:
            peer.kill()
            cases.kill()
