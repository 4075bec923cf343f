"""The agent's chains as they were installed, and how the present output of ``iptables-save`` differs from them. Pure.

The agent reads back what it has installed, in the tool's own form. So it needs no parser of the tool's matches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from host_reporter.marking.rules_text import CHAIN, GENERATIONS

_RULE = re.compile(r"^(?:\[\d+:\d+\] )?-A (\S+) ?(.*)$")
_DECLARED = re.compile(r"^:(\S+) ")
_NEW_CLASS = re.compile(r"^-R (\S+) 1 -j DSCP --set-dscp (\d+)$", re.MULTILINE)
_SET_CLASS = re.compile(r"--set-dscp \S+")
_SHOWN = 3

Table = Mapping[str, tuple[str, ...]]
"""The rules of each chain, without their counters and without the chain's name."""


def table(text: str) -> dict[str, tuple[str, ...]]:
    """Returns the chains in an output of ``iptables-save`` or an input for ``iptables-restore``."""
    chains: dict[str, list[str]] = {}
    for line in text.splitlines():
        if declared := _DECLARED.match(line):
            chains.setdefault(declared[1], [])
        elif rule := _RULE.match(line):
            chains.setdefault(rule[1], []).append(rule[2])
    return {chain: tuple(rules) for chain, rules in chains.items()}


@dataclass(frozen=True)
class InstalledRules:
    """The chains in force, as the kernel showed them right after they were installed."""

    chains: Table

    def differences(self, seen: Table) -> tuple[str, ...]:
        """Returns in words what differs from the installation; it names only a few differences."""
        sentences = []
        jumps = seen.get("OUTPUT", ()).count(f"-j {CHAIN}")
        gone = [chain for chain in self.chains if chain not in seen]
        if len(gone) == len(self.chains):
            return (f"all {len(gone)} chains of the agent were gone",)
        if jumps != 1:
            sentences.append(f"the jump from OUTPUT to {CHAIN} was {'gone' if jumps == 0 else f'there {jumps} times'}")
        if gone:
            sentences.append(_listed([f"chain {chain}" for chain in gone], "gone"))
        emptied = [chain for chain, rules in self.chains.items() if rules and seen.get(chain) == ()]
        if len(emptied) > _SHOWN:
            sentences.append(f"all rules of {len(emptied)} chains of the agent were gone")
        else:
            gone += emptied
            sentences += [f"all rules of chain {chain} ({len(self.chains[chain])}) were gone" for chain in emptied]
        others = [
            (chain, rules)
            for chain, rules in self.chains.items()
            if chain not in gone and chain not in emptied and rules != seen[chain]
        ]
        sentences += [_changed(chain, rules, seen[chain]) for chain, rules in others[:_SHOWN]]
        if len(others) > _SHOWN:
            sentences.append(f"{len(others) - _SHOWN} more chains of the agent were changed")
        return tuple(sentences)

    def counted(self, generation: int) -> tuple[str, ...] | None:
        """Returns the counted rules, one for each mark; None where this generation is not in force."""
        return self.chains.get(GENERATIONS[generation])

    def with_new_classes(self, text: str) -> InstalledRules:
        """Returns the rules after a text of ``rules_text.new_classes`` was carried out."""
        chains = dict(self.chains)
        for chain, dscp in _NEW_CLASS.findall(text):
            first, *rest = chains[chain]
            chains[chain] = (_SET_CLASS.sub(f"--set-dscp {int(dscp):#04x}", first), *rest)
        return InstalledRules(chains)


def learned(text: str, generation: int, seen: Table) -> InstalledRules | None:
    """Returns what a text of ``rules_text.switch_over`` has installed, as ``seen`` shows it.

    Returns None where ``seen`` does not fit the text, because another program has changed the rules in the meantime.
    """
    idle = GENERATIONS[1 - generation]
    given = {chain: rules for chain, rules in table(text).items() if chain not in {"OUTPUT", idle}}
    if any(len(seen.get(chain, ())) != len(rules) for chain, rules in given.items()):
        return None
    return InstalledRules({chain: seen[chain] for chain in given})


def class_changes(text: str) -> int:
    """Returns the number of rules that a text of ``rules_text.new_classes`` replaces."""
    return len(_NEW_CLASS.findall(text))


def _changed(chain: str, rules: Sequence[str], seen: Sequence[str]) -> str:
    gone, more = (Counter(rules) - Counter(seen)).total(), (Counter(seen) - Counter(rules)).total()
    if gone and more:
        return f"{gone} of {len(rules)} rules of chain {chain} were replaced by others"
    if gone:
        return f"{gone} of {len(rules)} rules of chain {chain} {'was' if gone == 1 else 'were'} gone"
    if more:
        return f"chain {chain} had {more} rule{'s' if more > 1 else ''} that the agent did not make"
    return f"the rules of chain {chain} were in another order"


def _listed(names: Sequence[str], how: str) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more} {'was' if len(names) == 1 else 'were'} {how}"
