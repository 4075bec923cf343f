"""From sockets to jobs, links and bytes: the pure parts, on values."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.wire import MAX_BATCH_LINKS, MAX_LINKS
from host_reporter.discovery.sockets.links import REMEMBERED_SECONDS, Link, Links, Uses
from host_reporter.discovery.sockets.sock_diag import ESTABLISHED, LISTEN, Socket
from host_reporter.discovery.sockets.table import UNDECIDED_LOOKS, Ends, SocketTable, Traffic, Verdict
from host_reporter.discovery.traffic_report import FoundTraffic, fitting, traffic_report

HERE = socket.inet_aton("10.0.0.1")
PEER = socket.inet_aton("10.0.0.2")
HERE_IPV6 = socket.inet_pton(socket.AF_INET6, "fd00::1")
PEER_IPV6 = socket.inet_pton(socket.AF_INET6, "fd00::2")
OTHER = socket.inet_aton("10.0.0.3")
PEERS = Ends(HERE, PEER)
RAIL = socket.inet_aton("10.1.0.1")
ADDRESSES = {"10.0.0.1": "h1", "10.0.0.2": "h2", "10.0.0.3": "h3", "fd00::2": "h2"}


def link(remote: bytes, port: int | None, remote_port: int | None) -> Link:
    return Link(remote, port, remote_port, HERE)


def sock(cookie: int, port: int = 40_000, remote_port: int = 5000, *, remote: bytes = PEER, **parts: int) -> Socket:
    values = {"inode": cookie + 1000, "cgroup": 7, "state": ESTABLISHED, "acked": 0, "received": 0} | parts
    return Socket(
        cookie, values["inode"], values["cgroup"], values["state"], HERE, port, remote, remote_port,
        values["acked"], values["received"],
    )  # fmt: skip


def listening(cookie: int, port: int) -> Socket:
    return sock(cookie, port, 0, remote=bytes(4), state=LISTEN)


class By:
    """Says whose sockets are, by cookie; counts how often each was asked for."""

    def __init__(self, owners: Mapping[int, str], undecided: Iterable[int] = ()) -> None:
        self.owners, self.undecided = dict(owners), set(undecided)
        self.asked: list[int] = []

    def __call__(self, new: list[Socket]) -> Verdict:
        cookies = {sock.cookie for sock in new}
        self.asked += sorted(cookies)
        return Verdict(
            {cookie: job for cookie, job in self.owners.items() if cookie in cookies},
            frozenset(self.undecided & cookies),
        )


# Bytes and connections -----------------------------------------------------------------------------------------------


def test_bytes_count_from_the_look_in_which_a_job_is_followed_first() -> None:
    table, judge = SocketTable(), By({1: "a", 2: "a"})
    assert table.update([sock(1, acked=500, received=50)], {"a"}, judge) == {"a"}
    assert table.traffic("a") == {}
    # A connection that came since is counted from its beginning.
    assert table.update([sock(1, acked=600, received=50), sock(2, 40_001, acked=30)], {"a"}, judge) == {"a"}
    assert table.traffic("a") == {PEERS: Traffic(130, 0)}
    assert table.update([sock(1, acked=600, received=60), sock(2, 40_001, acked=30)], {"a"}, judge) == frozenset()
    assert table.traffic("a") == {PEERS: Traffic(130, 10)}
    # What a connection has carried is not lost with it.
    assert table.update([sock(1, acked=600, received=60)], {"a"}, judge) == {"a"}
    assert table.traffic("a") == {PEERS: Traffic(130, 10)}


def test_a_connection_with_the_same_ports_is_another_one_if_its_cookie_is() -> None:
    table, judge = SocketTable(), By({1: "a", 2: "a"})
    table.update([sock(1, acked=1000)], {"a"}, judge)
    assert table.update([sock(2, acked=10)], {"a"}, judge) == {"a"}
    assert table.traffic("a") == {PEERS: Traffic(10, 0)}


def test_each_socket_is_asked_for_once() -> None:
    table, judge = SocketTable(), By({1: "a"})
    for _ in range(5):
        table.update([sock(1), sock(2)], {"a"}, judge)
    assert judge.asked == [1, 2]


def test_what_nobody_holds_is_asked_for_again_for_a_while() -> None:
    table, judge = SocketTable(), By({}, {1})
    for _ in range(UNDECIDED_LOOKS + 3):
        table.update([sock(1)], {"a"}, judge)
    assert judge.asked == [1] * UNDECIDED_LOOKS
    # Who comes meanwhile is found.
    judge = By({}, {2})
    table.update([sock(2)], {"a"}, judge)
    judge.owners = {2: "a"}
    assert table.update([sock(2)], {"a"}, judge) == {"a"}


def test_what_was_looked_for_at_some_jobs_only_is_looked_for_again() -> None:
    table, calls = SocketTable(), 0

    def half(new: list[Socket]) -> Verdict:
        nonlocal calls
        calls += 1
        return Verdict({}, frozenset(sock.cookie for sock in new), 0.5)

    for _ in range(10):
        table.update([sock(1)], {"a"}, half)
    assert calls == 2 * UNDECIDED_LOOKS


def test_a_job_that_comes_later_gets_what_was_nobodys() -> None:
    table = SocketTable()
    table.update([sock(1), sock(2)], {"a"}, By({1: "a"}))
    assert table.update([sock(1), sock(2)], {"a", "b"}, By({1: "a", 2: "b"})) == {"b"}
    assert {job: len(found) for job, found in table.by_job().items()} == {"a": 1, "b": 1}
    # And what a job that is gone had can be another's.
    table.update([sock(1), sock(2)], {"b"}, By({}))
    table.update([sock(1), sock(2)], {"b", "c"}, By({1: "c"}))
    assert {job: len(found) for job, found in table.by_job().items()} == {"b": 1, "c": 1}


# Connections that ended between two looks ----------------------------------------------------------------------------


class Looks:
    """A table of job a (and b), whose looks are a list of sockets and those that ended since."""

    def __init__(self, owners: Mapping[int, str]) -> None:
        self.table, self.judge = SocketTable(), By(owners)

    def take(self, sockets: list[Socket], *ended: Socket, jobs: str = "a", is_all: bool = True) -> None:
        self.table.update(sockets, set(jobs), self.judge)
        self.table.settle(ended, {PEER, OTHER}, is_all=is_all)

    def sent(self, job: str = "a") -> dict[bytes, int]:
        return {ends.remote: traffic.sent for ends, traffic in self.table.traffic(job).items()}


def test_a_socket_that_was_a_strangers_counts_from_when_it_is_the_jobs() -> None:
    looks = Looks({})
    looks.take([sock(1, acked=500), sock(2, 40_001, acked=5)])
    looks.judge.owners = {1: "a"}
    looks.take([sock(1, acked=500), sock(2, 40_001, acked=5)])
    assert looks.table.by_job() == {}, "it was asked for already"
    looks.table.ask_again({1001})
    assert looks.judge.asked == [1, 2]
    looks.take([sock(1, acked=520), sock(2, 40_001, acked=5)])
    looks.take([sock(1, acked=530), sock(2, 40_001, acked=5)])
    assert looks.sent() == {PEER: 10}
    assert looks.judge.asked == [1, 2, 1], "of the other one nothing is new"


def test_what_was_sent_in_a_namespace_stays_sent_when_that_is_let_go() -> None:
    host, inside = Looks({1: "a"}), Looks({2: "a", 3: "b"})
    for looks in (host, inside):
        looks.take([], jobs="ab")
    host.take([sock(1, acked=100)], jobs="ab")
    # One of them is too short to be told whose it was.
    inside.take([sock(2, acked=40), sock(3, remote=OTHER, acked=7)], sock(9, 40_009, 6000, acked=3), jobs="ab")
    host.table.inherit(inside.table)
    assert (host.sent("a"), host.sent("b")) == ({PEER: 140}, {OTHER: 7})
    assert (host.table.missed("a"), host.table.missed("b")) == (3, 3)
    host.take([sock(1, acked=150)], jobs="a")
    assert host.sent("a") == {PEER: 190}
    # Of what is followed no more nothing is left, and nothing comes.
    host.table.inherit(inside.table)
    assert (host.sent("a"), host.sent("b")) == ({PEER: 230}, {})


def test_a_socket_that_a_list_has_left_out_is_no_new_one() -> None:
    looks = Looks({1: "a"})
    looks.take([])
    looks.take([sock(1, acked=500)])
    looks.take([])
    looks.take([sock(1, acked=520)])
    assert looks.sent() == {PEER: 520} and looks.judge.asked == [1]
    looks.take([], sock(1, acked=530))
    assert looks.sent() == {PEER: 530}
    # Two come back while a third goes.
    looks = Looks({1: "a", 2: "a", 3: "a"})
    looks.take([sock(1), sock(2, 40_001), sock(3, 40_002)])
    looks.take([sock(3, 40_002)])
    looks.take([sock(1), sock(2, 40_001)])
    assert [sock.cookie for sock in looks.table.by_job()["a"]] == [1, 2]


def test_the_last_bytes_of_a_connection_count_whenever_the_kernel_tells_them() -> None:
    looks = Looks({1: "a", 2: "a", 3: "a"})
    looks.take([])
    looks.take([sock(1, acked=10), sock(2, 40_001, acked=10), sock(3, 40_002, acked=10)])
    # The first ends after the look and before the question; the second is half closed, and ends much later.
    looks.take([sock(1, acked=10), sock(3, 40_002, acked=20)], sock(1, acked=15))
    assert looks.sent() == {PEER: 45}
    looks.take([sock(3, 40_002, acked=20)])
    looks.take([sock(3, 40_002, acked=20)], sock(2, 40_001, acked=500))
    assert looks.sent() == {PEER: 535}
    looks.take([], sock(3, 40_002, acked=20))
    assert looks.sent() == {PEER: 535} and looks.table.missed("a") == 0
    looks.take([], sock(9, 1, 2, remote=bytes((192, 0, 2, 1)), acked=1000))
    assert looks.table.missed("a") == 0, "what goes to no host is nobody's demand"


def test_short_connections_to_a_jobs_port_are_its_own_if_nobody_else_uses_it() -> None:
    looks = Looks({1: "a", 2: "a", 4: "b"})
    looks.take([], jobs="ab")
    looks.take([sock(1), sock(2, 40_001)], jobs="ab")
    looks.take([sock(1), sock(2, 40_001)], sock(5, 40_005, acked=70), jobs="ab")
    assert looks.sent() == {PEER: 70} and looks.table.missed("a") == 0
    # Toward another host, or another port, they are anybody's: both jobs hear of them.
    looks.take([sock(1)], sock(6, 40_006, remote=OTHER, acked=30), sock(7, 40_007, 6000, acked=3), jobs="ab")
    assert looks.sent() == {PEER: 70}
    assert (looks.table.missed("a"), looks.table.missed("b")) == (33, 33)
    # Now another job has one there, too.
    looks.take([sock(1), sock(4, 40_009)], sock(8, 40_010, acked=10), jobs="ab")
    assert looks.sent() == {PEER: 70} and looks.sent("b") == {PEER: 0} and looks.table.missed("b") == 43


def test_short_connections_through_a_port_that_is_listened_on_are_the_listeners() -> None:
    looks = Looks({1: "a"})
    looks.take([listening(1, 5000), listening(2, 22)])
    both = [listening(1, 5000), listening(2, 22)]
    looks.take(both, sock(5, 5000, 40_000, acked=8, received=9), sock(6, 22, 40_001, acked=7))
    assert looks.table.traffic("a") == {PEERS: Traffic(8, 9)}
    assert looks.table.missed("a") == 0, "what ssh sends is no job's"


def test_a_job_hears_of_what_ended_since_it_is_followed() -> None:
    looks = Looks({1: "a", 2: "a", 3: "b"})
    looks.take([], sock(5, acked=10))
    looks.take([listening(1, 5000)], sock(6, acked=20))
    assert looks.table.missed("a") == 20
    looks.take([listening(1, 5000), listening(3, 6000)], sock(7, acked=30), sock(8, 6000, acked=5), jobs="ab")
    assert (looks.table.missed("a"), looks.table.missed("b")) == (50, 0)
    assert looks.sent("b") == {}, "it was not followed yet"
    # Where the kernel has told of some only, nobody knows.
    looks.take([], is_all=False, jobs="ab")
    assert looks.table.missed("a") is None and looks.table.missed("b") is None
    looks.take([], jobs="b")
    looks.take([], jobs="ab")
    assert looks.table.missed("a") == 0, "followed anew"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.integers(1, 6), st.integers(0, 50), max_size=6), min_size=1, max_size=8))
def test_bytes_only_grow_and_are_those_that_were_seen(looks: list[dict[int, int]]) -> None:
    """Against the plain sum: of each socket the most that was seen of it since the first look at the job."""
    table, judge = SocketTable(), By(dict.fromkeys(range(1, 7), "a"))
    table.update([], {"a"}, judge)
    most: dict[tuple[int, int], int] = {}
    lives: dict[int, int] = {}
    before, total = set[int](), 0
    for drawn in looks:
        for cookie in drawn.keys() - before:
            lives[cookie] = lives.get(cookie, 0) + 1
        # A socket's own count never falls.
        shown = {cookie: max(count, most.get((cookie, lives[cookie]), 0)) for cookie, count in drawn.items()}
        for cookie, count in shown.items():
            most[cookie, lives[cookie]] = count
        # A cookie never comes again: each life is another.
        table.update(
            [sock(cookie + 100 * lives[cookie], acked=count) for cookie, count in shown.items()],
            {"a"},
            By({cookie + 100 * life: "a" for cookie, life in lives.items()}),
        )
        before = set(drawn)
        now = table.traffic("a").get(PEERS, Traffic(0, 0)).sent
        assert now >= total
        total = now
    assert total == sum(most.values())


# Links ---------------------------------------------------------------------------------------------------------------


def links(
    own: list[Socket], others: Iterable[Socket] = (), tracker: Links | None = None, now: float = 0.0
) -> set[Link]:
    return set((tracker or Links()).look(own, Uses([*own, *others]), now))


def test_one_connection_is_told_by_both_ports() -> None:
    assert links([sock(1, 40_000, 5000)]) == {link(PEER, 40_000, 5000)}


def test_a_port_that_several_connections_share_stands_for_them() -> None:
    assert links([sock(n, 40_000 + n, 5000) for n in range(50)]) == {link(PEER, None, 5000)}
    assert links([sock(n, 5000, 40_000 + n) for n in range(50)]) == {link(PEER, 5000, None)}
    both = [sock(1, 40_001, 5000), sock(2, 40_002, 5000), sock(3, 40_003, 5000, remote=OTHER)]
    assert links(both) == {link(PEER, None, 5000), link(OTHER, 40_003, 5000)}


def test_a_port_that_connections_from_two_addresses_share_stands_for_those_of_each() -> None:
    from_rail = [sock(n, 40_000 + n)._replace(local=RAIL) for n in (3, 4)]
    both = [sock(1, 40_001), sock(2, 40_002), *from_rail]
    assert links(both) == {link(PEER, None, 5000), Link(PEER, None, 5000, RAIL)}
    assert links(both[:3]) == {link(PEER, None, 5000), Link(PEER, 40_003, 5000, RAIL)}
    assert links(from_rail, both[:2]) == {Link(PEER, sock.local_port, 5000, RAIL) for sock in from_rail}


def test_bytes_are_counted_by_the_addresses_at_both_ends() -> None:
    table, judge = SocketTable(), By({1: "a", 2: "a"})
    table.update([], {"a"}, judge)
    table.update([sock(1, acked=10), sock(2, 40_001, acked=5)._replace(local=RAIL)], {"a"}, judge)
    assert table.traffic("a") == {PEERS: Traffic(10, 0), Ends(RAIL, PEER): Traffic(5, 0)}


def test_a_port_that_the_job_listens_on_is_its_own_from_the_first_connection_on() -> None:
    assert links([listening(9, 5000), sock(1, 5000, 40_000)]) == {link(PEER, 5000, None)}


def test_a_port_that_others_use_too_does_not_stand_for_the_job() -> None:
    own = [sock(1, 40_001, 2049), sock(2, 40_002, 2049)]
    assert links(own, [sock(3, 40_003, 2049)]) == {link(PEER, 40_001, 2049), link(PEER, 40_002, 2049)}
    # Toward another peer they may.
    assert links(own, [sock(3, 40_003, 2049, remote=OTHER)]) == {link(PEER, None, 2049)}


def test_a_port_of_a_peer_that_jobs_in_two_containers_use_stands_for_neither() -> None:
    pair = [sock(1, 40_001), sock(2, 40_002)]
    other = [sock(3, 40_003), sock(4, 40_004)]
    uses = Uses([*pair, *other])
    assert Links().look(pair, uses, 0.0, Uses(pair)) == {link(PEER, 40_001, 5000), link(PEER, 40_002, 5000)}
    # If both are the same job's, it does.
    assert Links().look(pair, uses, 0.0, uses) == {link(PEER, None, 5000)}


def test_short_connections_through_one_port_change_nothing_after_the_second() -> None:
    tracker = Links()
    reported = [links([sock(n, 40_000 + n, 5000)], tracker=tracker, now=n * 0.1) for n in range(100)]
    assert reported[0] == {link(PEER, 40_000, 5000)}
    assert all(found == {link(PEER, None, 5000)} for found in reported[1:])
    # Between two of them, too; but not for ever, and not if another job has the port by then.
    assert links([], tracker=tracker, now=12.0) == {link(PEER, None, 5000)}
    assert links([], [sock(7, 41_000, 5000)], tracker=tracker, now=12.1) == set()
    assert links([], tracker=tracker, now=12.0 + REMEMBERED_SECONDS) == set()


def test_ten_thousand_short_connections_leave_little_behind() -> None:
    tracker = Links()
    for n in range(10_000):
        links([sock(n, 20_000 + n, 5000 + n)], tracker=tracker, now=n * 0.006)
    # Those of the last half minute, two ports each.
    assert len(tracker._ports) <= 2 * REMEMBERED_SECONDS / 0.006 + 4
    assert links([], tracker=tracker, now=1000.0) == set()
    assert not tracker._ports


PORTS = st.integers(1, 4)
SOCKETS = st.lists(st.tuples(PORTS, PORTS, st.sampled_from([PEER, OTHER]), st.booleans()), max_size=12, unique=True)


@settings(max_examples=300, deadline=None)
@given(SOCKETS, st.sets(PORTS))
def test_links_match_all_connections_of_the_job_and_no_others(
    drawn: list[tuple[int, int, bytes, bool]], listens: set[int]
) -> None:
    seen: set[tuple[int, int, bytes]] = set()
    own, others = [listening(1000 + port, port) for port in listens], []
    for n, (port, remote_port, remote, is_own) in enumerate(drawn):
        if (port, remote_port, remote) not in seen:
            seen.add((port, remote_port, remote))
            (own if is_own else others).append(sock(n, port, remote_port, remote=remote))
    found = links(own, others)

    def matches(sock: Socket) -> bool:
        return any(
            link.remote == sock.remote
            and link.local_port in (None, sock.local_port)
            and link.remote_port in (None, sock.remote_port)
            for link in found
        )

    assert all(matches(sock) for sock in own if sock.state != LISTEN)
    assert not any(matches(sock) for sock in others)


# In the wire's words -------------------------------------------------------------------------------------------------


def test_what_is_told_names_hosts_and_leaves_unknown_addresses_out() -> None:
    stranger, self_ = socket.inet_aton("192.0.2.1"), HERE
    found = FoundTraffic(
        frozenset({Link(PEER, None, 5000), Link(OTHER, 5001, 40_000), Link(stranger, 1, 2), Link(self_, 3, 4)}),
        9,
        {PEERS: Traffic(10, 20), Ends(HERE, stranger): Traffic(5, 5), Ends(HERE, self_): Traffic(1, 1)},
    )
    reported = traffic_report("a", found, ADDRESSES, "h1", as_of=12.0, counter=3)
    assert reported.unknown == {"192.0.2.1"}
    assert [(link.peer, link.port, link.peer_port) for link in reported.traffic.links or ()] == [
        ("h2", None, 5000), ("h3", 5001, 40_000),
    ]  # fmt: skip
    assert [(peer.peer, peer.sent, peer.received) for peer in reported.traffic.peers] == [("h2", 10.0, 20.0)]
    assert (reported.traffic.connections, reported.traffic.left_out, reported.traffic.counter) == (9, 0, 3)
    assert reported.traffic.missed == 0.0
    assert (
        traffic_report("a", found._replace(missed=None), ADDRESSES, "h1", as_of=0.0, counter=3).traffic.missed is None
    )


def test_too_many_links_are_counted_and_every_peer_is_still_named() -> None:
    many = {Link(PEER, n, n) for n in range(1, MAX_LINKS + 100)} | {Link(OTHER, 1, 1)}
    reported = traffic_report(
        "a", FoundTraffic(frozenset(many), len(many), {}), ADDRESSES, "h1", as_of=0.0, counter=1
    ).traffic
    assert reported.links is not None and len(reported.links) == MAX_LINKS
    assert reported.left_out == len(many) - MAX_LINKS
    assert {link.peer for link in reported.links} == {"h2", "h3"}


def test_a_batch_has_room_for_so_many_links() -> None:
    full = frozenset(Link(PEER, n, n) for n in range(1, MAX_LINKS + 1))
    parts = [
        traffic_report(f"j{n}", FoundTraffic(full, 1, {}), ADDRESSES, "h1", as_of=0.0, counter=1).traffic
        for n in range(6)
    ]
    fitted = fitting(parts)
    assert sum(len(part.links or ()) for part in fitted) == MAX_BATCH_LINKS
    assert sum(len(part.links or ()) + part.left_out for part in fitted) == 6 * MAX_LINKS


def test_a_peer_with_addresses_of_both_families_is_one_host() -> None:
    loopback = bytes(15) + b"\1"
    links = {Link(PEER, 5000, None), Link(PEER_IPV6, 5000, None), Link(PEER_IPV6, 40_000, 6000)}
    traffic = {
        PEERS: Traffic(10, 1),
        Ends(HERE_IPV6, PEER_IPV6): Traffic(20, 2),
        Ends(loopback, loopback): Traffic(5, 5),
    }
    found = FoundTraffic(frozenset(links), 3, traffic)
    report = traffic_report("a", found, ADDRESSES, "h1", as_of=1.0, counter=0)
    assert report.unknown == frozenset()
    told = [(link.peer, link.port, link.peer_port) for link in report.traffic.links or ()]
    assert sorted(told, key=str) == [("h2", 40_000, 6000), ("h2", 5000, None)]
    assert [(each.peer, each.sent, each.received) for each in report.traffic.peers] == [("h2", 30.0, 3.0)]
