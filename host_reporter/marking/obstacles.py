"""Finds rules of other programs that keep packets from their mark, or change it. Pure; those rules stay as they are.

A rule before the agent's jump may accept a packet, which then leaves the table without a mark. A rule behind the jump
may set another DSCP. Both belong to the operator, so the agent only names them and says what would help.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from host_reporter.marking.families import IPV4
from host_reporter.marking.installed_rules import Table
from host_reporter.marking.rules_text import CHAIN

_ENDS = frozenset({"ACCEPT", "DROP", "REJECT", "QUEUE", "NFQUEUE"})
_REMARKS = frozenset({"DSCP", "TOS"})
_ANY = frozenset({"tcp", "all", "6", "0"})
_MOST_DEEP = 16
_SHOWN = 3


class Rule(NamedTuple):
    """A parsed rule. ``is_whole`` means that it matches all TCP that leaves, ``is_goto`` that it does not return."""

    text: str
    target: str
    is_goto: bool
    is_whole: bool


def obstacles(seen: Table, tool: str = IPV4.tool) -> tuple[str, ...]:
    """Returns the obstacles in a table that has our jump, as sentences without a full stop. ``tool`` changes it."""
    output = [*map(_read, seen.get("OUTPUT", ()))]
    ours = next((place for place, rule in enumerate(output) if rule.text == f"-j {CHAIN}"), None)
    if ours is None:
        return ()
    before = [(place, rule) for place, rule in enumerate(output[:ours], 1) if _may_end(rule, seen)]
    behind = [("OUTPUT", rule) for rule in output[ours + 1 :]]
    behind += [("POSTROUTING", _read(text)) for text in seen.get("POSTROUTING", ())]
    sentences = []
    for place, rule in before[:_SHOWN]:
        takes = "all packets that this host sends" if _is_whole(rule, seen) else "the packets that it matches"
        sentences.append(
            f"rule {place} of OUTPUT ({rule.text}) stands before the agent's and takes {takes}, which leave without a "
            f"mark: put it behind the rule '-j {CHAIN}', or remove it ({tool} -t mangle -D OUTPUT {place})"
        )
    for chain, rule in [(chain, rule) for chain, rule in behind if _may_remark(rule, seen)][:_SHOWN]:
        sentences.append(
            f"a rule of {chain} ({rule.text}) sets another DSCP than the agent's in packets that it matches: remove "
            "it, or let it leave jobs' packets out"
        )
    return tuple(sentences)


def _read(text: str) -> Rule:
    target, is_goto = "", False
    whole = True
    words = iter(_words(text))
    for word in words:
        if word in {"-j", "-g", "--jump", "--goto"}:
            target, is_goto = next(words, ""), word in {"-g", "--goto"}
            break
        if word in {"-p", "--protocol"}:
            whole &= next(words, "") in _ANY
        elif word == "-m":
            whole &= next(words, "") in {"tcp", "comment"}
        elif word == "--comment":
            next(words, "")
        else:
            whole = False
    return Rule(text, target, is_goto, whole)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # The rule has a comment with a single quotation mark.
        return text.split()


def _can_match(rule: Rule) -> bool:
    """Returns whether a rule can match TCP that leaves this host."""
    words = _words(rule.text)
    for before, option, value in zip(["", *words], words, words[1:], strict=False):
        if before == "!":
            continue
        if (option == "-p" and value not in _ANY) or (option == "-o" and value == "lo"):
            return False
    return True


def _may_end(rule: Rule, seen: Table, deep: int = 0) -> bool:
    """Returns whether a packet may leave OUTPUT by this rule, which is ``deep`` chains below OUTPUT."""
    if not _can_match(rule):
        return False
    return _ends(rule, deep) or any(_may_end(below, seen, deep + 1) for below in _below(rule, seen, deep))


def _is_whole(rule: Rule, seen: Table, deep: int = 0) -> bool:
    """Returns whether all TCP that leaves this host leaves OUTPUT by this rule."""
    if not rule.is_whole:
        return False
    return _ends(rule, deep) or any(_is_whole(below, seen, deep + 1) for below in _below(rule, seen, deep))


def _ends(rule: Rule, deep: int) -> bool:
    """Returns whether the rule itself ends OUTPUT. In a chain below, RETURN and -g lead back to OUTPUT."""
    return rule.target in _ENDS or (deep == 0 and (rule.is_goto or rule.target == "RETURN"))


def _may_remark(rule: Rule, seen: Table, deep: int = 0) -> bool:
    if not _can_match(rule):
        return False
    return rule.target in _REMARKS or any(_may_remark(below, seen, deep + 1) for below in _below(rule, seen, deep))


def _below(rule: Rule, seen: Table, deep: int) -> Iterator[Rule]:
    """Yields the rules of the chain that a rule leads to, unless the chain is ours."""
    if deep < _MOST_DEEP and rule.target in seen and not rule.target.startswith(CHAIN):
        yield from map(_read, seen[rule.target])
