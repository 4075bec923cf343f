"""One rank of two that only send, for whichever Python runs it: rank 0 receives from rank 1, and writes a log.

By itself, on the standard library: ``python3 rank_traffic.py FILE`` ends when FILE is there. torchrun's variables tell
it its rank, and where rank 0 listens. Rank 0 says how far it is as nanoGPT does: an iteration is ITERATION_BYTES.
"""

import os
import socket
import sys
import threading
import time
from pathlib import Path

ITERATION_BYTES = 250_000
CONNECTIONS = 4


def main() -> None:
    """Send or receive until the file is there."""
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    work = _receive if os.environ["RANK"] == "0" else _send
    threading.Thread(target=work, args=address, daemon=True).start()
    while not Path(sys.argv[1]).exists():
        time.sleep(0.05)


def _receive(host: str, port: int) -> None:
    server = socket.create_server((host, port))
    peers = [server.accept()[0] for _ in range(CONNECTIONS)]
    done = number = 0
    for peer in peers:
        peer.setblocking(False)
    while True:
        done += sum(map(_come, peers))
        while done >= ITERATION_BYTES:
            done, number = done - ITERATION_BYTES, number + 1
            sys.stdout.write(f"iter {number}: loss {1 + 5 / number:.4f}, time 80.00ms, mfu 1.20%\n")
            sys.stdout.flush()
        time.sleep(0.01)


def _come(peer: socket.socket) -> int:
    """Returns how many bytes have come, of at most 64 KiB."""
    try:
        return len(peer.recv(65536))
    except BlockingIOError:
        return 0


def _send(host: str, port: int) -> None:
    for _ in range(CONNECTIONS):
        threading.Thread(target=_send_on, args=(_connect(host, port),), daemon=True).start()


def _connect(host: str, port: int) -> socket.socket:
    while True:
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            time.sleep(0.1)


def _send_on(peer: socket.socket) -> None:
    while True:
        peer.sendall(bytes(65536))


if __name__ == "__main__":
    main()
