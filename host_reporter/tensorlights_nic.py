"""TensorLights at one interface: puts its part of the tree there, moves the jobs on, and takes it away again.

Nothing is there while fewer than two jobs have a server on this host. Somebody else's qdisc is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection

from host_reporter.nic_error import foreign
from host_reporter.nic_tree import HANDLE
from host_reporter.tensorlights import Server, places
from host_reporter.tensorlights_tree import NOTHING, ROOT, changes, lights, removal
from host_reporter.traffic_control import TrafficControl

_AGENT = int(HANDLE, 16)
"""Root of a tree by DSCP, which ``host_reporter.nic`` or the testbed has made: TensorLights is a guest in it."""


class TensorLightsNic:
    """One interface of ``rate_bps``. Its methods raise NicError. Not for several threads.

    What an agent that crashed has left is found and adopted, or taken away.
    """

    def __init__(self, interface: str, rate_bps: float) -> None:
        self.interface = interface
        self._rate_bps = rate_bps
        self._control = TrafficControl(interface)
        self._put_anew = True

    def serve(self, servers: Collection[Server], turn: int | None) -> bool:
        """Give each server its band at this turn (None: for good); whether anything of ours is there now."""
        root = self._control.root()
        if root.major not in {0, ROOT, _AGENT}:
            raise foreign(self.interface, root.kind, f"{root.major:x}:")
        found = places(servers, turn)
        if not found:
            self.remove()
            return False
        major = root.major
        if major == 0:
            self._control.make_root(self._rate_bps)
            major, self._put_anew = ROOT, True
        wanted = lights(servers, found)
        self._control.carry_out(changes(wanted, self._control.seen(major), anew=self._put_anew), major, self._rate_bps)
        self._put_anew = False
        return True

    def remove(self) -> bool:
        """Take away what is ours, of an agent before this one too: the former qdisc is there again. Whether any was."""
        self._put_anew = True
        root = self._control.root()
        if root.major == ROOT:
            self._control.drop_root()
            return True
        if root.major == _AGENT and (seen := self._control.seen(_AGENT)) != NOTHING:
            self._control.carry_out(removal(seen), _AGENT, self._rate_bps)
            return True
        return False
