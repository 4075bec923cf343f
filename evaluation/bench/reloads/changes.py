"""The changes of the settings that the bench makes, and what each may touch. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Settings = Mapping[str, Any]
"""The data of a settings file."""

GONE_HOST, SLOWER_HOST, BUSY_HOST = "h2", "h6", "h3"
"""The hosts that the changes take away, slow down, and try to take away though jobs run on it. The first is on the
switch of h1, so that a switch changes that full links pass."""
SLOWER_LEAF, SPINE = 3, 4
TURNING = {"turning-c": 5002, "turning-d": 5003}
"""The jobs whose order another policy turns, by name, with the TCP ports that they listen on."""
POLICY, OTHER_POLICY = "fifo", "sebf"
TOKEN = "bench-viewer"
_TURNING_RULES = "|".join(rf"tp_(src|dst)={port}\b" for port in TURNING.values())
GONE_HOST_RULES = r"(nw_src|nw_dst|arp_tpa)=10\.0\.0\.2\b"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the settings that a reload makes, and another one takes back.

    ``edit`` changes a copy of the settings. ``fields`` are what both answers say has changed; None: the settings are
    refused, and the answer has the words ``refusal``. ``ports`` are those whose queues it concerns, and ``rules``
    matches the rules that it concerns. With ``has_token`` the tokens file has an entry more. Where it ``rewrites_all``,
    all ports keep their rows of queues, but the rows' contents change.
    """

    name: str
    edit: Callable[[dict[str, Any]], None]
    fields: frozenset[str] | None
    ports: frozenset[str] = frozenset()
    rules: str | None = None
    refusal: str = ""
    has_token: bool = False
    rewrites_all: bool = False

    def of(self, settings: Settings) -> dict[str, Any]:
        """Returns the settings with the change."""
        changed = copy.deepcopy(dict(settings))
        self.edit(changed)
        return changed

    def may_touch(self, rule: str) -> bool:
        """Returns whether the change concerns a rule, as ``observed`` names it."""
        return self.rules is not None and re.search(self.rules, rule) is not None


def _set(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda settings: settings.update(values)


def _without(host: str) -> Callable[[dict[str, Any]], None]:
    def edit(settings: dict[str, Any]) -> None:
        settings["hosts"] = [entry for entry in settings["hosts"] if entry["name"] != host]

    return edit


def _slower_host(settings: dict[str, Any]) -> None:
    entry = next(entry for entry in settings["hosts"] if entry["name"] == SLOWER_HOST)
    entry |= {"ingress_bps": entry["ingress_bps"] / 2, "egress_bps": entry["egress_bps"] / 2}


def _slower_link(settings: dict[str, Any]) -> None:
    link = next(link for link in settings["links"] if {link["a"], link["b"]} == {SLOWER_LEAF, SPINE})
    link["rate_bps"] /= 2


def _nothing(_settings: dict[str, Any]) -> None:
    """Change nothing in the settings file."""


SINGLE = (
    Change(
        "a host is removed",
        _without(GONE_HOST),
        fields=frozenset({f"hosts.{GONE_HOST}"}),
        ports=frozenset({"s1-eth2"}),
        rules=GONE_HOST_RULES,
    ),
    Change(
        "a host is slower",
        _slower_host,
        fields=frozenset({f"hosts.{SLOWER_HOST}.ingress_bps", f"hosts.{SLOWER_HOST}.egress_bps"}),
        ports=frozenset({"s3-eth2"}),
    ),
    Change(
        "a link is slower",
        _slower_link,
        fields=frozenset({"links.3:3-4:3.rate_bps"}),
        ports=frozenset({"s3-eth3", "s4-eth3"}),
    ),
    Change(
        "floors",
        _set(floors={"job_class": 0.02, "other": 0.2}),
        fields=frozenset({"floors.job_class", "floors.other"}),
        rewrites_all=True,
    ),
    Change("policy", _set(policy=OTHER_POLICY), fields=frozenset({"policy"}), rules=_TURNING_RULES),
    Change("table_budget", _set(table_budget=3000), fields=frozenset({"table_budget"})),
    Change("a token is added", _nothing, fields=frozenset({f"api.tokens_file:{TOKEN}"}), has_token=True),
    Change("a host is untrusted", _set(untrusted_hosts=["h5"]), fields=frozenset({"untrusted_hosts"})),
)
"""Changes that a reload makes."""


def _all_at_once(settings: dict[str, Any]) -> None:
    for change in SINGLE:
        change.edit(settings)


TOGETHER = Change(
    "all at once",
    _all_at_once,
    fields=frozenset().union(*(change.fields or () for change in SINGLE)),
    ports=frozenset().union(*(change.ports for change in SINGLE)),
    rules="|".join(change.rules for change in SINGLE if change.rules is not None),
    has_token=True,
    rewrites_all=True,
)


def _wrong(name: str, edit: Callable[[dict[str, Any]], None], refusal: str) -> Change:
    """Returns a change that is refused, in a file that has all the right changes too."""

    def both(settings: dict[str, Any]) -> None:
        _all_at_once(settings)
        edit(settings)

    return Change(name, both, fields=None, refusal=refusal)


WRONG = (
    _wrong("a policy that does not exist", _set(policy="no-such-policy"), "no-such-policy"),
    _wrong("a setting that does not exist", _set(no_such_setting=1), "no_such_setting"),
    _wrong("a host is removed though jobs run there", _without(BUSY_HOST), "remove the job first"),
)
CHANGES = (*SINGLE, TOGETHER, *WRONG)
"""One round."""
