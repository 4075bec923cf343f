"""The parameter server: one thread that reads every worker's gradients and sends parameters in the order of SaSP.

Between two chunks it looks anew at what is the most urgent: a straggler's chunks before those of workers that are
ahead (``order.Turns``), and for each worker front layers first. What lies unsent in the kernel is kept small, so that
little has been decided before it must be.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import logging
import selectors
import socket
import time
from collections.abc import Mapping
from typing import Any, TypeVar

from sasp.core.errors import SaspError
from sasp.core.order import ChunkQueue, Turns
from sasp.core.scheme import Scheme
from sasp.exchange.connection import WorkerConnection
from sasp.exchange.frames import Frame, Kind, json_message, notice_silence, pack, small_buffer, unpack
from sasp.exchange.peers import read_hello, read_order
from sasp.server.store import Store

T = TypeVar("T")

log = logging.getLogger("sasp")

MAX_STRANGERS = 64
"""Beside its workers a server has at most so many connections."""

GREETING_SECONDS = 10.0
_READ_BYTES = 256 * 1024
_GOODBYE_SECONDS = 1.0


class Server:
    """Serves one job of ``workers`` workers. ``run`` returns when all are done."""

    def __init__(
        self,
        listener: socket.socket,
        workers: int,
        scheme: Scheme,
        *,
        token: str,
        patience: float,
        store: Store | None = None,
    ) -> None:
        """``store``: a new one of these workers and this scheme, for who wants to see what comes and goes."""
        address = listener.getsockname()[0]
        if not token and not ipaddress.ip_address(address).is_loopback:
            raise SaspError(f"{address} is not on loopback: whoever reaches it could join; give a token")
        self._listener = listener
        self._scheme = scheme
        self._token = token
        self._patience = patience
        self._workers = workers
        self._store = Store(workers, scheme) if store is None else store
        self._all: set[WorkerConnection] = set()
        self._by_rank: dict[int, WorkerConnection] = {}
        self._clock = [0] * workers
        self._turns = Turns(stragglers_first=scheme.sending == "sasp")
        self._selector = selectors.DefaultSelector()
        self._order: tuple[int, ...] | None = None

    def run(self) -> None:
        """Serve until all workers are done. Raises SaspError where one is lost or does not come."""
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        deadline = time.monotonic() + self._patience
        try:
            while not (len(self._by_rank) == self._workers and all(worker.ended for worker in self._by_rank.values())):
                timeout = self._serve(time.monotonic())
                if len(self._by_rank) < self._workers:
                    self._check_ungreeted(deadline)
                    timeout = min(1.0, timeout) if timeout is not None else 1.0
                for key, events in self._selector.select(timeout):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif events & selectors.EVENT_READ:
                        self._read(key.data)
        except SaspError as error:
            self._say_goodbye(str(error))
            raise
        finally:
            for worker in self._all:
                worker.sock.close()
            self._selector.close()

    # Coming and going ----------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            sock, address = self._listener.accept()
            if len(self._all) >= self._workers + MAX_STRANGERS:
                sock.close()
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            notice_silence(sock)
            sasp = self._scheme.sending == "sasp"
            if sasp:
                small_buffer(sock)
            queue = ChunkQueue("priority" if sasp else "fifo", supersede=True)
            worker = WorkerConnection(sock, f"{address[0]}:{address[1]}", time.monotonic(), queue)
            self._all.add(worker)
            self._selector.register(sock, selectors.EVENT_READ, worker)

    def _check_ungreeted(self, deadline: float) -> None:
        now = time.monotonic()
        for worker in [other for other in self._all if other.rank is None and now - other.since > GREETING_SECONDS]:
            self._drop(worker, "it did not greet")
        if now > deadline:
            missing = sorted(set(range(self._workers)) - self._by_rank.keys())
            raise SaspError(f"worker {', '.join(map(str, missing))} did not come within {self._patience:g} s")

    def _drop(self, worker: WorkerConnection, why: str) -> None:
        """Close a connection. Raises SaspError where it is that of a worker that is not done."""
        self._selector.unregister(worker.sock)
        self._all.discard(worker)
        if worker.rank is None:
            log.warning("%s was sent away: %s", worker.name, why)
            with contextlib.suppress(OSError):
                text = why.encode()
                worker.sock.send(pack(Frame(Kind.REFUSED, len(text))) + text)
            worker.sock.close()
            return
        worker.sock.close()
        worker.ended = True
        if not worker.done:
            raise SaspError(f"worker {worker.rank} ({worker.name}) is lost: {why}")

    def _say_goodbye(self, why: str) -> None:
        """Tell everybody why, each after the rest of what it is being sent; who takes too long is not told."""
        text, until = why.encode(), time.monotonic() + _GOODBYE_SECONDS
        left = {worker for worker in self._all if not worker.send_closed}
        for worker in left:
            worker.messages.append(pack(Frame(Kind.REFUSED, len(text))) + text)
        while (left := {worker for worker in left if not worker.send_on()}) and time.monotonic() < until:
            _writable({worker: worker.sock for worker in left}, until - time.monotonic())

    # Reading -------------------------------------------------------------------------------------------------------

    def _read(self, worker: WorkerConnection) -> None:
        """Take what is there; whole messages are acted on."""
        budget = _READ_BYTES
        while budget > 0 and worker in self._all:
            target = worker.head if worker.frame is None else worker.body
            if worker.got < len(target):
                try:
                    count = worker.sock.recv_into(memoryview(target)[worker.got :])
                except BlockingIOError:
                    return
                except OSError as error:
                    self._drop(worker, str(error))
                    return
                if count == 0:
                    self._drop(worker, "it closed the connection")
                    return
                worker.got += count
                budget -= count
                if worker.got < len(target):
                    continue
            try:
                self._advance(worker)
            except SaspError as error:
                self._drop(worker, str(error))

    def _advance(self, worker: WorkerConnection) -> None:
        """A header, or all of a message, is there."""
        worker.got = 0
        if worker.frame is None:
            frame = unpack(worker.head)
            self._store.check_length(frame, known=worker.rank is not None)
            try:
                worker.frame, worker.body = frame, bytearray(frame.length)
            except MemoryError:
                raise SaspError(f"there is no memory for its message of {frame.length} bytes") from None
            if frame.length:
                return
        frame, body = worker.frame, worker.body
        worker.frame = None
        self._act(worker, frame, body)

    def _act(self, worker: WorkerConnection, frame: Frame, body: bytearray) -> None:
        if worker.rank is None:
            if frame.kind is not Kind.HELLO:
                raise SaspError("it sent something before it greeted")
            self._welcome(worker, body)
        elif worker.done:
            raise SaspError(f"it sent {frame.kind.name} after it was done")
        elif frame.kind is Kind.LAYER and worker.rank == 0:
            self._store.accept_layer(frame.chunk, body)
            self._hand_out()
        elif frame.kind is Kind.ORDER and self._store.complete and worker.order is None:
            worker.order = read_order(body, self._store.layer_count)
            self._settle_order()
        elif frame.kind is Kind.PUSH and worker.order is not None:
            due = self._store.push(worker.rank, frame, body)
            self._clock[worker.rank] = max(self._clock[worker.rank], frame.iteration)
            for rank, iteration in due:
                self._by_rank[rank].queue.put(frame.chunk, iteration)
        elif frame.kind is Kind.DONE:
            self._let_go(worker, worker.rank)
        else:
            raise SaspError(f"it sent {frame.kind.name} where that makes no sense")

    def _welcome(self, worker: WorkerConnection, body: bytearray) -> None:
        hello = read_hello(body, self._workers, self._scheme)
        if not hmac.compare_digest(hello.token.encode(), self._token.encode()):
            raise SaspError("its token is wrong")
        if hello.rank in self._by_rank:
            raise SaspError(f"there is a worker {hello.rank} already")
        self._store.accept_hello(hello)
        worker.rank = hello.rank
        worker.messages.append(json_message(Kind.WELCOME, {"workers": self._workers}))
        self._by_rank[hello.rank] = worker
        self._hand_out()

    def _hand_out(self) -> None:
        """Once worker 0's parameters are there, to all that have come and have not had them."""
        if not self._store.complete:
            return
        for worker in self._by_rank.values():
            if worker.rank != 0 and not worker.send_closed and worker.rank not in self._store.sent_layers_to:
                assert worker.rank is not None
                self._store.sent_layers_to.add(worker.rank)
                for number, layer in enumerate(self._store.layers()):
                    worker.messages += (pack(Frame(Kind.LAYER, len(layer), number)), layer)

    def _settle_order(self) -> None:
        """The order of the first worker that trains at all is everybody's; who has told its own gets it."""
        if self._order is None:
            done = {rank for rank, worker in self._by_rank.items() if worker.done}
            first = self._by_rank.get(min(set(range(self._workers)) - done, default=0))
            if first is None or first.order is None:
                return
            self._order = first.order
            self._store.begin(self._order)
        for rank, worker in self._by_rank.items():
            if worker.order is not None and not worker.send_closed and rank not in self._store.sent_order_to:
                self._store.sent_order_to.add(rank)
                worker.messages.append(json_message(Kind.ORDER, self._order))

    def _let_go(self, worker: WorkerConnection, rank: int) -> None:
        """A worker is done: from here on the others are answered without it."""
        for number, other, iteration in self._store.leave(rank):
            self._by_rank[other].queue.put(number, iteration)
        worker.done = True
        worker.stop_sending()
        self._settle_order()
        going = self._workers - sum(other.done for other in self._by_rank.values())
        log.info("worker %d is done after %d iterations; %d go on", rank, self._store.iterations(rank), going)

    # Sending -------------------------------------------------------------------------------------------------------

    def _serve(self, now: float) -> float | None:
        """Send what can be sent now; seconds after which to look again, None: when something happens."""
        again: float | None = None
        while True:
            waiting = {
                rank: self._clock[rank]
                for rank, worker in self._by_rank.items()
                if len(worker.queue) and not worker.send_closed
            }
            busy = {rank for rank, worker in self._by_rank.items() if worker.sending or worker.messages}
            blocked = {rank for rank in busy if not self._sends_on(self._by_rank[rank])}
            ready = {rank for rank in waiting if rank not in blocked and self._by_rank[rank] in self._all}
            can_take = _writable({rank: self._by_rank[rank].sock for rank in ready}, 0.0)
            chosen, again = self._turns.pick(waiting, can_take, now)
            if chosen is None:
                break
            self._begin(self._by_rank[chosen])
        self._watch(waiting, blocked)
        return again

    def _begin(self, worker: WorkerConnection) -> None:
        """Begin the worker's most urgent chunk: its contents are those of now."""
        taken = worker.queue.dequeue()
        assert taken is not None
        number, iteration = taken
        assert worker.rank is not None
        body = self._store.contents(number, worker.rank, iteration)
        worker.sending += (memoryview(pack(Frame(Kind.FRESH, len(body), number, iteration))), memoryview(body))

    def _sends_on(self, worker: WorkerConnection) -> bool:
        """Whether nothing of what has begun is left to be sent to it."""
        return worker in self._all and worker.send_on()

    def _watch(self, waiting: dict[int, int], blocked: set[int]) -> None:
        """Be woken by sockets that can go on; not by those that have to wait for a straggler."""
        for worker in self._all:
            wanted = selectors.EVENT_READ
            if worker.rank in blocked or (worker.rank in waiting and self._is_next(worker.rank, waiting)):
                wanted |= selectors.EVENT_WRITE
            if self._selector.get_key(worker.sock).events != wanted:
                self._selector.modify(worker.sock, wanted, worker)

    def _is_next(self, rank: int | None, waiting: dict[int, int]) -> bool:
        if self._scheme.sending != "sasp":
            return True
        assert rank is not None
        return waiting[rank] == min(waiting.values())


def _writable(sockets: Mapping[T, socket.socket], seconds: float) -> set[T]:
    """Those whose sockets can take something, once one can or ``seconds`` are over."""
    if not sockets:
        return set()
    with selectors.PollSelector() as poll:
        for name, sock in sockets.items():
            poll.register(sock, selectors.EVENT_WRITE, name)
        return {key.data for key, _events in poll.select(seconds)}


def listen(address: str, port: int, workers: int) -> socket.socket:
    """A listening socket for so many workers. Raises SaspError."""
    try:
        # Linux gives handshakes up early once more than half of the backlog is unfinished (reqsk_timer_handler).
        return socket.create_server((address, port), backlog=2 * (workers + MAX_STRANGERS))
    except OSError as error:
        raise SaspError(f"cannot listen on {address}:{port}: {error}") from error


def serve(
    address: str,
    port: int,
    workers: int,
    scheme: Scheme,
    *,
    token: str = "",
    patience: float = 60.0,
    listening: Any = None,
    store: Store | None = None,
) -> None:
    """Serve one job; ``listening`` is called with the port once workers may come. Raises SaspError."""
    with listen(address, port, workers) as listener:
        server = Server(listener, workers, scheme, token=token, patience=patience, store=store)
        if listening is not None:
            listening(listener.getsockname()[1])
        server.run()
