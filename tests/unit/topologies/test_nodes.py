"""What the hosts and switches of an emulated network are given for packets of a size."""

from __future__ import annotations

from topologies import limits, nodes


def test_packets_have_so_many_frames_at_each_interface_of_a_host() -> None:
    lines = nodes.links_up({"h1-eth0": ("10.0.0.1", "fd00::1"), "h1-eth1": ("10.1.0.1",)}, 2)
    assert lines == [
        "link set dev h1-eth0 gso_max_segs 2 gso_max_size 3312 up",
        "addr replace 10.0.0.1/24 dev h1-eth0",
        "addr replace fd00::1/64 dev h1-eth0 nodad",
        "link set dev h1-eth1 gso_max_segs 2 gso_max_size 3312 up",
        "addr replace 10.1.0.1/24 dev h1-eth1",
    ]
    assert "gso_max_segs 8 gso_max_size 12000" in nodes.links_up({"h1-eth0": ()}, nodes.DEFAULT_SEGMENTS)[0]


def test_routes_have_the_least_timeout_of_tcp() -> None:
    lines = nodes.links_up({"h1-eth0": ("10.0.0.1", "fd00::1")}, 2, 4.4)
    assert lines[3:] == [
        "route replace 10.0.0.0/24 dev h1-eth0 proto kernel scope link src 10.0.0.1 rto_min 4400ms",
        "route replace fd00::/64 dev h1-eth0 proto kernel metric 256 rto_min 4400ms",
    ]


def test_a_queue_holds_as_many_bytes_of_small_packets_as_of_large_ones() -> None:
    assert nodes.queue_packets("kernel", nodes.DEFAULT_SEGMENTS) == limits.QUEUE_PACKETS == 48
    assert nodes.queue_packets("kernel", 2) == 4 * 48
    assert nodes.queue_packets("user", 2) == limits.LONE_QUEUE_PACKETS
