"""A program that takes TCP in a lab, and counts what comes."""

RECEIVER = r"""
import socket, sys, threading
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
print(server.getsockname()[1], flush=True)
got = [0]
def drain(peer):
    while data := peer.recv(65536):
        got[0] += len(data)
def take():
    while True:
        threading.Thread(target=drain, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=take, daemon=True).start()
for line in sys.stdin:
    print(got[0], flush=True)
"""
"""Takes an address and a port (0: any free one), says its port, and for each line on stdin the bytes that have come."""
