"""SaSP's schemes, clocks and command: what is asked for, what is refused, and with which words."""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
import subprocess
import sys

import pytest

import sasp
from sasp.core.chunks import Layout, chunk_elements
from sasp.core.clocks import Clocks
from sasp.core.errors import SaspError
from sasp.core.leads import Leads
from sasp.core.order import ChunkQueue, Turns
from sasp.core.scheme import Scheme, Versions, parse
from sasp.exchange.frames import Frame, Kind, notice_silence, pack, receive, unpack
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("text", "lead", "release", "bound"),
    [
        ("bsp", 0, 0, 0), ("bsp+overlap", 0, 0, 0), ("bsp+sasp", 0, 0, 0), ("bsp+sasp:1", 1, 0, 1),
        ("ssp:3", 0, 3, 3), ("ssp:3+overlap", 0, 3, 3), ("ssp:3+sasp", 3, 0, 3),
        ("asp", 0, None, None), ("asp+sasp", 0, None, None), ("asp+sasp:2", 2, None, None),
    ],
)  # fmt: skip
def test_a_scheme_is_read_and_keeps_its_bound_with_sasp(text, lead, release, bound) -> None:
    scheme = parse(text)
    assert (scheme.lead, scheme.release, scheme.bound) == (lead, release, bound)
    assert str(scheme) == text
    assert scheme.together == text.startswith("bsp")


@pytest.mark.parametrize(
    "text",
    ["", "ssp", "ssp:", "ssp:0", "ssp:-1", "ssp:1.5", "bsp:1", "asp:1", "asp+overlap:1", "bsp+overlap:1", "sasp",
     "bsp+", "BSP", "ssp:99999999", "ssp:1+sasp:2", "bsp+sasp+sasp"],
)  # fmt: skip
def test_what_is_no_scheme_is_refused(text) -> None:
    with pytest.raises(SaspError):
        parse(text)


def test_clocks_refuse_what_would_break_the_bound() -> None:
    clocks = Clocks(2, 1)
    clocks.end_iteration()
    clocks.end_iteration()
    assert not clocks.may_compute(0)
    with pytest.raises(SaspError, match="more than 1 behind"):
        clocks.end_iteration()
    with pytest.raises(SaspError, match="synchronised for iteration 4"):
        clocks.synchronise(0, 4)
    clocks.synchronise(0, 2)
    with pytest.raises(SaspError, match="after 2"):
        clocks.synchronise(0, 1)
    assert (clocks.computed, clocks.communicated) == (2, 0)
    clocks.synchronise(1, 2)
    assert clocks.communicated == 2


def test_each_layer_has_a_lead_of_its_own() -> None:
    clocks = Clocks(2, 0)
    clocks.set_leads([1, 0])
    clocks.end_iteration()
    assert (clocks.due(0), clocks.due(1)) == (0, 1)
    assert (clocks.may_compute(0), clocks.may_compute(1)) == (True, False)
    with pytest.raises(SaspError, match="layer 1 computed although its synchronisation is more than 0 behind"):
        clocks.end_iteration()
    clocks.synchronise(1, 1)
    clocks.end_iteration()
    clocks.set_leads([0, 0])
    assert clocks.due(0) == 2
    for wrong, why in (([1], "there must be 2"), ([-1, 0], "of 0 or more")):
        with pytest.raises(SaspError, match=why):
            clocks.set_leads(wrong)


def test_what_is_due_first_is_sent_first() -> None:
    """Chunk 0's layer may be one iteration late, so chunk 1 of the same iteration goes before it."""
    leads, queue = Leads(2, 0), ChunkQueue()
    leads.change([1, 0], since=1)
    for iteration in (1, 2):
        for layer in (0, 1):
            queue.put(layer, iteration, leads.due(layer, iteration))
    assert [queue.dequeue() for _ in range(4)] == [(1, 1), (0, 1), (1, 2), (0, 2)]
    with pytest.raises(SaspError, match="leads change from iteration 1 on, after a change from iteration 3 on"):
        leads.change([0, 0], since=3)
        leads.change([1, 1], since=1)


def test_what_cannot_be_cut_or_counted_is_refused() -> None:
    with pytest.raises(SaspError, match="must have at least 1"):
        Layout([4], 0)
    with pytest.raises(SaspError, match="each must have elements"):
        Layout([4, 0], 2)
    with pytest.raises(SaspError, match="no layer"):
        Clocks(0, 1)
    with pytest.raises(SaspError, match="staleness is -1"):
        Clocks(1, -1)
    with pytest.raises(SaspError, match="sent iteration 3 of chunk 0 after 0"):
        Versions(2, 1, Scheme()).push(0, 0, 3)
    assert chunk_elements([10, 500], 400, 4, whole_layers=False) == 100
    assert chunk_elements([10, 500], 400, 4, whole_layers=True) == 500


def test_who_has_left_holds_nobody_back_and_is_answered_no_more() -> None:
    books = Versions(3, 2, parse("ssp:1"))
    assert books.push(2, 0, 1) == [(2, 1)]
    assert books.push(2, 0, 2) == []
    assert books.push(1, 0, 1) == [(1, 1)]
    # Worker 0 has sent nothing: only its going lets worker 2's second iteration be answered.
    assert books.leave(0) == [(0, 2, 2)]
    assert books.least(0) == 1
    assert books.leave(2) == []
    assert books.push(1, 0, 2) == [(1, 2)]
    with pytest.raises(SaspError, match="after it was done"):
        books.push(2, 0, 3)
    assert books.leave(1) == []
    assert books.least(0) == 2


def test_who_sends_what_its_clocks_cannot_have_allowed_is_refused() -> None:
    """Under BSP two gradients of one worker would pass for those of two."""
    books = Versions(2, 1, parse("bsp+sasp"))
    assert books.push(0, 0, 1) == []
    with pytest.raises(SaspError, match="worker 0 sent iteration 2 of chunk 0 although it was answered up to 0"):
        books.push(0, 0, 2)
    ahead = Versions(2, 1, parse("ssp:2+sasp"))
    for iteration in (1, 2, 3):
        ahead.push(0, 0, iteration)
    with pytest.raises(SaspError, match="may lead that by 2"):
        ahead.push(0, 0, 4)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="silence is noticed by Linux's means")
@pytest.mark.parametrize("said", [b"", b"something on its way"])
def test_a_peer_that_falls_silent_is_an_error_and_nobody_waits_for_ever(said) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as mine:
        peer, _ = listener.accept()
        with peer:
            notice_silence(mine, silence_seconds=2, probe_seconds=1)
            _drop_all_that_comes(peer)
            if said:
                mine.sendall(said)
            mine.settimeout(30)
            with pytest.raises(OSError, match="timed out") as found:
                receive(mine)
            # The kernel has ended the connection; the limit of the call itself has no number.
            assert found.value.errno == errno.ETIMEDOUT


def _drop_all_that_comes(sock: socket.socket) -> None:
    """A filter that keeps nothing: to the other end this one looks like a host that has lost its power."""
    keep_nothing = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
    attach_filter = 26
    sock.setsockopt(socket.SOL_SOCKET, attach_filter, struct.pack("HP", 1, ctypes.addressof(keep_nothing)))


def test_no_more_is_taken_in_than_is_due() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(pack(Frame(Kind.FRESH, 1 << 34)))
        with pytest.raises(SaspError, match="a message of 17179869184 bytes"):
            receive(other, 4096)


def test_a_blocked_straggler_is_waited_for_and_not_longer() -> None:
    turns = Turns(patience=1.0)
    waiting = {0: 3, 1: 5, 2: 5}
    assert turns.pick(waiting, {1, 2}, now=10.0) == (None, 1.0)
    assert turns.pick(waiting, {1, 2}, now=10.75) == (None, 0.25)
    assert turns.pick(waiting, {1, 2}, now=11.0) == (1, None)
    assert turns.pick(waiting, {1, 2}, now=11.5) == (None, 0.5)
    assert turns.pick(waiting, {0, 1, 2}, now=11.6) == (0, None)
    assert turns.pick({1: 5, 2: 5}, {1, 2}, now=11.7)[0] in {1, 2}


def test_messages_are_read_back_and_anything_else_is_refused() -> None:
    frame = Frame(Kind.PUSH, 4096, chunk=7, iteration=3, value=0.125)
    assert unpack(pack(frame)) == frame
    for bad, why in (
        (b"GET / HTTP/1.1\r\nHost: somewhere", "no message"),
        (pack(Frame(Kind.HELLO, 1 << 30)), "bytes"),
        (pack(frame)[:2] + b"\x63" + pack(frame)[3:], "no message"),
    ):
        with pytest.raises(SaspError, match=why):
            unpack(bad[: len(pack(frame))])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--workers", "0"], "whole number from 1"),
        (["--workers", "2", "--scheme", "sap"], "it must be bsp, ssp:S"),
        (["--workers", "2", "--listen", "somewhere"], "ADDRESS:PORT"),
        (["--workers", "2", "--patience", "nan"], "number of seconds"),
        (["--workers", "2", "--token-file", "/nonexistent/token"], "/nonexistent/token"),
    ],
)
def test_the_server_says_what_was_wrong(options, why) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "sasp", *options],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 2
    assert why in found.stderr
    assert "Traceback" not in found.stderr


def test_without_pytorch_the_server_says_so_and_the_package_still_loads() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import sasp\n"
        "from sasp.__main__ import main\n"
        "sys.exit(main(['--workers', '1']))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (found.returncode, "needs PyTorch" in found.stderr) == (2, True), found.stderr
    assert sasp.parse("bsp") == Scheme(sending="after")
