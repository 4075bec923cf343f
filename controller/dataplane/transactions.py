"""One change of one switch's rules as one transaction: all of it, or none.

With bundles: open, add all, barrier, read the errors, then commit or discard. The errors are read first because a
switch commits a bundle even if it refused a part. A refusal at the commit, such as one rule too many for the table,
undoes the whole bundle. Without bundles: add, barrier, read the errors; then delete the old rules, or the added ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane import openflow
from controller.dataplane.channel import Channel, Refusal
from controller.dataplane.messages import InBundle
from controller.pieces import Steps
from controller.rules.rule import PIECE, Difference, Rule, by_key
from controller.steps import in_steps

SHOWN = 3
"""Limits the refusals that are reported one by one. A full table refuses many rules for one reason."""

FLAGS = ofp.ONF_BF_ATOMIC | ofp.ONF_BF_ORDERED


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a change: whether it was done, how many rule messages were sent, and the refusals as texts."""

    done: bool
    sent: int
    errors: tuple[str, ...] = ()


def knows_bundles(channel: Channel) -> bool:
    """Returns whether the switch has bundles, by opening and discarding an empty one. Raises SwitchGoneError."""
    number = channel.next_bundle()
    if channel.settle([_control(channel, number, ofp.ONF_BCT_OPEN_REQUEST)]):
        return False
    channel.settle([_control(channel, number, ofp.ONF_BCT_DISCARD_REQUEST)])
    return True


def change(channel: Channel, wanted: Difference, held: frozenset[Rule], epoch: int) -> Outcome:
    """Make one change, or leave everything as it was. ``held`` are the switch's rules. Raises SwitchGoneError."""
    if not wanted:
        return Outcome(done=True, sent=0)
    if channel.bundles is None:
        channel.bundles = knows_bundles(channel)
    if channel.bundles:
        return _in_bundle(channel, wanted, epoch)
    return _step_by_step(channel, wanted, held, epoch)


def _in_bundle(channel: Channel, wanted: Difference, epoch: int) -> Outcome:
    number = channel.next_bundle()
    # A bundle takes effect at once, so deletes can come first and make room in a nearly full table.
    removed, added = in_steps(in_order(wanted.remove)), in_steps(in_order(wanted.add))
    rules: list[Rule | None] = [None, *removed, *added]
    refusals, sent = channel.settle_many(_parts(channel, number, removed, added, epoch), len(rules))
    if refusals:
        channel.settle([_control(channel, number, ofp.ONF_BCT_DISCARD_REQUEST)])
        return Outcome(done=False, sent=len(rules) - 1, errors=_in_words(channel, refusals, rules))
    commit = _control(channel, number, ofp.ONF_BCT_COMMIT_REQUEST)
    refusals, _ = channel.settle_many([commit], 1, earlier=sent)
    if refusals:
        # If parts were refused, the refusal of the commit itself adds nothing.
        parts = [refusal for refusal in refusals if refusal.index < len(sent)]
        return Outcome(done=False, sent=len(rules) - 1, errors=_in_words(channel, parts or refusals, rules))
    return Outcome(done=True, sent=len(rules) - 1)


def _parts(channel: Channel, number: int, removed: list[Rule], added: list[Rule], epoch: int) -> Iterator[Any]:
    """Yields the messages that open a bundle and fill it, each made just before it is sent."""
    datapath, numbers = channel.datapath, channel.queue_numbers
    yield parser.ONFBundleCtrlMsg(datapath, number, ofp.ONF_BCT_OPEN_REQUEST, FLAGS, [])
    deletes = (openflow.delete(datapath, rule) for rule in removed)
    for message in chain(deletes, (openflow.add(datapath, rule, epoch, numbers) for rule in added)):
        yield InBundle(datapath, number, FLAGS, message)


def _step_by_step(channel: Channel, wanted: Difference, held: frozenset[Rule], epoch: int) -> Outcome:
    datapath, numbers = channel.datapath, channel.queue_numbers
    added, removed = in_steps(in_order(wanted.add)), in_steps(in_order(wanted.remove))
    sent = len(added)
    refusals, _ = channel.settle_many((openflow.add(datapath, rule, epoch, numbers) for rule in added), len(added))
    added_so_far, deleted_so_far = _accepted(added, refusals), []
    errors = _in_words(channel, refusals, [*added])
    if not refusals:
        sent += len(removed)
        refusals, _ = channel.settle_many((openflow.delete(datapath, rule) for rule in removed), len(removed))
        if not refusals:
            return Outcome(done=True, sent=sent)
        deleted_so_far = _accepted(removed, refusals)
        errors = _in_words(channel, refusals, [*removed])
    before = in_steps(by_key(held))
    back = [openflow.delete(datapath, rule) for rule in added_so_far if rule.key not in before]
    back += [openflow.add(datapath, before[rule.key], epoch, numbers) for rule in added_so_far if rule.key in before]
    back += [openflow.add(datapath, rule, epoch, numbers) for rule in deleted_so_far]
    refusals = channel.settle(back)
    errors += tuple(f"undoing it: {text}" for text in _in_words(channel, refusals, []))
    return Outcome(done=False, sent=sent + len(back), errors=errors)


def _accepted(rules: list[Rule], refusals: list[Refusal]) -> list[Rule]:
    refused = {refusal.index for refusal in refusals}
    return [rule for index, rule in enumerate(rules) if index not in refused]


def _control(channel: Channel, number: int, kind: int) -> Any:
    return parser.ONFBundleCtrlMsg(channel.datapath, number, kind, FLAGS, [])


def in_order(rules: Iterable[Rule]) -> Steps[list[Rule]]:
    """Returns rules by table, priority and job; yields where others may go on.

    Later tables come first, so that no rule leads into a table that is not ready yet, where there is no bundle. Higher
    priorities come first, too.
    """
    sorted_in: dict[tuple[int, int], dict[str, list[Rule]]] = {}
    for number, rule in enumerate(rules, 1):
        sorted_in.setdefault((-rule.table, -rule.priority), {}).setdefault(rule.job or "", []).append(rule)
        if number % PIECE == 0:
            yield
    ordered: list[Rule] = []
    for _, by_job in sorted(sorted_in.items(), key=itemgetter(0)):
        for job in sorted(by_job):
            ordered += by_job[job]
        yield
    return ordered


def _in_words(channel: Channel, refusals: list[Refusal], rules: list[Rule | None]) -> tuple[str, ...]:
    texts = []
    for refusal in refusals:
        rule = rules[refusal.index] if refusal.index < len(rules) else None
        what = "a change" if rule is None else f"a rule in table {rule.table.value}"
        whose = f" of job {rule.job}" if rule is not None and rule.job is not None else ""
        texts.append(f"switch {channel.dpid:016x} refused {what}{whose}: {refusal.reason}")
    texts = list(dict.fromkeys(texts))
    more = len(texts) - SHOWN
    return (*texts[:SHOWN], f"switch {channel.dpid:016x} refused {more} rules more") if more > 0 else tuple(texts)
