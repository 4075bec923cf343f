"""The host's network interface: makes, adopts, changes and takes away the tree of ``host_reporter.nic_tree``."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from host_reporter.nic_error import NicError, foreign
from host_reporter.nic_guard import NicGuard
from host_reporter.nic_tree import HANDLE, MADE, OTHER_LEAF, htb_parts, htb_tree, signature, surplus
from host_reporter.tensorlights_tree import ROOT, is_leaf

__all__ = ["HANDLE", "Nic", "NicError", "htb_tree"]

_RUN_SECONDS = 20.0
_FILTER = re.compile(r" fh 800::([0-9a-f]+) ")
_CLASS = re.compile(rf"^class htb {HANDLE}:([0-9a-f]+) ", re.MULTILINE)


class Nic:
    """One managed interface. ``rate_bps`` of None: as the plan says. Not for several threads."""

    def __init__(self, interface: str, rate_bps: float | None) -> None:
        self.interface = interface
        self._rate_bps = rate_bps
        self._made = False
        self._guard = NicGuard(interface)
        self._applied: tuple[float, tuple[int, ...], float, float] | None = None

    def apply(
        self,
        link_bps: float,
        class_dscp: Sequence[int],
        class_floor: float,
        other_floor: float,
        *,
        look: bool = True,
    ) -> None:
        """Serve the classes so. Raises NicError.

        A tree of ours that is there is adopted, and changed in place; someone else's qdisc is left as it is.
        ``look`` of False: what was made before is believed to be still there.
        """
        wanted = (self._rate_bps or link_bps, tuple(class_dscp), class_floor, other_floor)
        if wanted == self._applied and not look:
            return
        try:
            root = self._root()
            if self._applied is None:
                root = self._without_lights(root)
            if wanted == self._applied and root is not None and root.get("handle") == f"{HANDLE}:":
                return
            self._build(root, wanted)
        except ValueError as error:
            raise NicError(f"{self.interface}: {error}") from error
        self._applied = wanted

    def watch(self) -> None:
        """Have the tree taken away too if this process is killed. Raises NicError."""
        if self._made:
            self._guard.watch()

    def remove(self) -> None:
        """Give the interface back to the kernel's default if an agent made the tree. Raises NicError."""
        if self._made:
            self._made, self._applied = False, None
            self._tc("qdisc", "del", "dev", self.interface, "root")
            self._guard.dismiss()

    def remove_left(self) -> bool:
        """Take away the tree of an agent that was killed; whether there was one. Raises NicError."""
        if not self._made_now() or MADE not in self._leaves():
            return False
        self._tc("qdisc", "del", "dev", self.interface, "root")
        return True

    def _build(self, root: dict[str, Any] | None, wanted: tuple[float, tuple[int, ...], float, float]) -> None:
        if root is not None and root.get("handle") == f"{HANDLE}:":
            default = str(root.get("options", {}).get("default", ""))
            if root.get("kind") != "htb" or int(default or "0", 16) != OTHER_LEAF:
                raise NicError(f"{self.interface} has a qdisc {HANDLE}: that is not as this agent makes it; remove it")
            filters, leaves = self._filters(), self._leaves()
            self._batch(htb_parts(self.interface, *wanted) + surplus(self.interface, wanted[1], filters, leaves))
            # By an agent before this one, which was killed.
            self._made |= MADE in leaves
            return
        if root is not None and root.get("handle", "0:") != "0:":
            raise foreign(self.interface, str(root.get("kind")), str(root.get("handle")))
        try:
            self._batch([*htb_tree(self.interface, *wanted), signature(self.interface)])
        except NicError:
            if self._made_now():
                self._tc("qdisc", "del", "dev", self.interface, "root")
            raise
        self._made = True

    def _without_lights(self, root: dict[str, Any] | None) -> dict[str, Any] | None:
        """The root qdisc, after what TensorLights left there was taken away: its agent was killed."""
        handle = None if root is None else root.get("handle")
        if handle == f"{ROOT:x}:" or (handle == f"{HANDLE}:" and any(map(is_leaf, self._leaves()))):
            from host_reporter.tensorlights_nic import TensorLightsNic  # noqa: PLC0415 - seldom needed

            TensorLightsNic(self.interface, 0.0).remove()
            return self._root()
        return root

    def _made_now(self) -> bool:
        root = self._root()
        return root is not None and root.get("handle") == f"{HANDLE}:"

    def _root(self) -> dict[str, Any] | None:
        """The root qdisc as tc tells it; None where the interface has none."""
        told = json.loads(self._tc("-j", "qdisc", "show", "dev", self.interface) or "[]")
        return next((qdisc for qdisc in told if qdisc.get("root")), None)

    def _filters(self) -> list[int]:
        """The DSCPs that have a filter. As text: not every tc has JSON here."""
        told = self._tc("filter", "show", "dev", self.interface, "parent", f"{HANDLE}:")
        return [int(handle, 16) for handle in _FILTER.findall(told)]

    def _leaves(self) -> list[int]:
        """The minor numbers of the classes."""
        told = self._tc("class", "show", "dev", self.interface)
        return [int(minor, 16) for minor in _CLASS.findall(told)]

    def _batch(self, lines: Sequence[str]) -> None:
        self._tc("-batch", "-", text="\n".join(lines) + "\n")

    def _tc(self, *arguments: str, text: str = "") -> str:
        try:
            done = subprocess.run(
                ["tc", *arguments], input=text, capture_output=True, text=True, check=True, timeout=_RUN_SECONDS
            )
        except FileNotFoundError as error:
            raise NicError("tc is not installed; install the package iproute2") from error
        except subprocess.CalledProcessError as error:
            told = " ".join(error.stderr.split())
            raise NicError(f"{self.interface}: {told[:300] or 'tc failed'}") from error
        except subprocess.TimeoutExpired as error:
            raise NicError(f"{self.interface}: tc did not end within {_RUN_SECONDS:g} s") from error
        return done.stdout
