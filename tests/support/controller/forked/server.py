"""A fork server of controllers: it imports a controller once, and makes a copy of itself one for each order.

Its argument is the file descriptor of a socket for orders. An order has two file descriptors with it: where the
controller's output goes, and where the server tells its process id and, when it has ended, its exit status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress

# Taken before eventlet replaces them: the server waits for orders and for ends in its own way.
from os import waitpid
from pathlib import Path
from select import epoll, select
from socket import recv_fds, socket
from typing import Any, NamedTuple

MOST_BYTES = 1 << 20
"""An order is at most so long: most of it is the environment."""


class Order(NamedTuple):
    """The command of a controller, its environment and its working folder."""

    command: list[str]
    environment: dict[str, str]
    folder: str


class Child(NamedTuple):
    """A controller that runs, and where its end is told."""

    pid: int
    told: int


def main() -> Any:
    """Fork controllers until the socket is closed. Returns what ``sys.exit`` takes, here and in each of them."""
    orders = socket(fileno=int(sys.argv[1]))
    # Ctrl-C is for who started the tests, and for the controllers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import eventlet  # noqa: PLC0415 - nothing else may be loaded before the next line

    eventlet.monkey_patch()
    from ryu.cmd import manager  # noqa: F401, PLC0415 - as above

    import controller.app  # noqa: F401, PLC0415 - nothing may be loaded before the line above

    order = next_order(orders)
    return 0 if order is None else become(order)


def next_order(orders: socket) -> Order | None:
    """Returns in each fork, with its order, and in the server when the socket is closed. Then all forks are killed."""
    children: dict[int, Child] = {}
    while True:
        ready, _, _ = select([orders, *children], [], [])
        for ended in children.keys() & set(ready):
            _tell_end(ended, children.pop(ended))
        if orders not in ready:
            continue
        message, passed, _, _ = recv_fds(orders, MOST_BYTES, 2)
        if not message:
            break
        log, told = passed
        pid = os.fork()
        if pid == 0:
            _forget(orders, children, told)
            _write_to(log)
            return Order(**json.loads(message))
        os.close(log)
        os.write(told, b"%d\n" % pid)
        children[os.pidfd_open(pid)] = Child(pid, told)
    for child in children.values():
        os.kill(child.pid, signal.SIGKILL)
    return None


def _tell_end(ended: int, child: Child) -> None:
    os.close(ended)
    _, status = waitpid(child.pid, 0)
    with suppress(BrokenPipeError):  # nobody wants to know
        os.write(child.told, b"%d\n" % os.waitstatus_to_exitcode(status))
    os.close(child.told)


def _forget(orders: socket, children: dict[int, Child], told: int) -> None:
    """Close what is the server's, in a fork."""
    orders.close()
    os.close(told)
    for ended, child in children.items():
        os.close(ended)
        os.close(child.told)


def _write_to(log: int) -> None:
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)


def become(order: Order) -> Any:
    """Run a controller as its command would in a process of its own."""
    from eventlet import hubs  # noqa: PLC0415 - see main

    from controller import __main__ as program  # noqa: PLC0415 - see main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    sys.argv = order.command
    sys.path[0] = str(Path(order.command[0]).parent)
    # The server's would be one for all forks.
    hubs.get_hub().poll = epoll()
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
