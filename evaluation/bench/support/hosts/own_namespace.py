"""A network namespace that the test enters itself, with what it starts: addresses of hosts without another machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator

_NEW_NETWORK = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def own_namespace(*addresses: str) -> Iterator[None]:
    """Be in a new one, whose loopback has these addresses; then where we were before."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _checked(_libc.unshare(_NEW_NETWORK))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            for address in addresses:
                bits = 128 if ":" in address else 32
                subprocess.run(["ip", "address", "add", f"{address}/{bits}", "dev", "lo"], check=True)
            yield
        finally:
            _checked(_libc.setns(before, _NEW_NETWORK))
    finally:
        os.close(before)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
