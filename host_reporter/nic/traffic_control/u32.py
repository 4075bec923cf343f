"""The u32 filters of TensorLights as pyroute2 writes and reads them. Importing it mends pyroute2's own reader."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyroute2.netlink import nla
from pyroute2.netlink.rtnl import tcmsg
from pyroute2.netlink.rtnl.tcmsg import cls_u32

_IN_HEADER = 20
_SOURCE_PORT = 0xFFFF0000
# The keys match IPv4 without options (so that TCP begins at byte 20), the protocol TCP, and its source port.
_KEYS = ("0x45/0xff+0", "0x06/0xff+9", "{port:#06x}/0xffff+20")
_SELECTOR_BYTES, _KEY_BYTES = 20, 16


class _U32Options(cls_u32.options):
    """A u32 filter's options. pyroute2 (0.9.7) reads the keys 4 bytes too early; this class does not."""

    class u32_sel(cls_u32.options.u32_sel):  # noqa: N801 - pyroute2 looks for this name
        def decode(self) -> None:
            nla.decode(self)
            self["keys"] = []
            for number in range(self["nkeys"]):
                key = self.u32_key(data=self.data, offset=self.offset + _SELECTOR_BYTES + number * _KEY_BYTES)
                key.decode()
                self["keys"].append(key)


tcmsg.plugins["u32"] = SimpleNamespace(
    options=_U32Options, get_parameters=cls_u32.get_parameters, fix_request=cls_u32.fix_request
)

EVERYTHING = ["0x0/0x0+0"]
"""The keys of a filter that matches every packet of its protocol."""


def keys_of(port: int) -> list[str]:
    """Returns the keys of a filter on a TCP source port."""
    return [key.format(port=port) for key in _KEYS]


def port_of(selector: Any) -> int | None:
    """Returns the source port that a filter matches; None where the filter is not ours."""
    if selector is None:
        return None
    keys = {key["key_off"]: (key["key_mask"], key["key_val"]) for key in selector["keys"]}
    mask, value = keys.get(_IN_HEADER, (0, 0))
    return int(value) >> 16 if mask == _SOURCE_PORT else None
