"""How full links are, by class and in all classes together."""

from __future__ import annotations

from controller.cli.top.ports import busiest, ports_table
from tests.support.controller.cli.pictures import network


def test_what_a_host_sends_is_counted_in_all_classes_together() -> None:
    known = network(h1={"0": 6e8, "2": 2e8})
    (link,) = known.links
    assert [use.name for use in busiest(known)] == ["1:1 > h1"], "nobody counts what it sends"
    counted = known.model_copy(update={"links": (link.model_copy(update={"a_to_b_total_bps": 9e8}),)})
    sent, received = busiest(counted)
    assert (sent.name, sent.load_bps, sent.by_class, sent.share) == ("h1 > 1:1", 9e8, {}, 0.9)
    assert (received.load_bps, received.share) == (8e8, 0.8)
    lines = ["".join(text for text, _ in line).split() for line in ports_table([sent, received], 100)[1:]]
    assert lines[0][-4:] == ["not", "counted", "by", "class"]
    assert lines[1][-6:] == ["0:", "75", "%,", "2:", "25", "%"]
