"""A small real HTTP server that takes reports as the controller does; it can go away, lose answers and refuse."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from controller.wire import HostReport, JobSpec
from controller.wire.parts import PartSpec


class ReporterServer:
    """What it took is in ``jobs`` and ``reports``; what it saw of the connections in ``tokens`` and ``connections``.

    ``part_hosts`` has the host of each job that was registered as a part.

    ``status``: answered instead of taking anything. ``lose_answers``: so many requests are carried out, and the
    connection closed without an answer. ``refuse``: job id to the status of its PUT. ``delay``: before every answer.
    ``period_seconds`` and ``urgent``: told in the answers.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.jobs: dict[str, JobSpec | PartSpec] = {}
        self.part_hosts: dict[str, str] = {}
        self.points: dict[str, list[float]] = {}
        self.ended: list[str] = []
        self.reports: list[HostReport] = []
        self.puts: list[str] = []
        self.tokens: list[str | None] = []
        self.connections = 0
        self.status: int | None = None
        self.lose_answers = 0
        self.refuse: dict[str, int] = {}
        self.delay = 0.0
        self.period_seconds = 5.0
        self.urgent: dict[str, Any] = {}
        self.plan: dict[str, Any] | None = None
        self.plan_waits = threading.Event()
        self._plan_changed = threading.Condition()
        self._taken: set[tuple[str, int]] = set()
        self._context = context
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"{'http' if self._context is None else 'https'}://localhost:{self.port}"

    def start(self) -> None:
        self._server = _Server(self, self.port, self._context)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """Go away, and cut all connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.cut()
            self._server = None

    def cut(self) -> None:
        """Close the kept connections, as a server does with idle ones."""
        assert self._server is not None
        self._server.cut()

    def forget(self) -> None:
        """Lose all memory, as a controller without a journal does."""
        with self._lock:
            self.jobs.clear()
            self.points.clear()
            self._taken.clear()

    def set_plan(self, plan: dict[str, Any]) -> None:
        """A new plan, for who waits."""
        with self._plan_changed:
            self.plan = plan
            self._plan_changed.notify_all()

    def handle(self, method: str, path: str, body: bytes, tag: str | None) -> tuple[int, dict[str, Any] | None]:
        """Carry out a request: status and document; a document of None is no answer at all."""
        if method == "GET" and self.status is None:
            with self._plan_changed:
                if tag == tag_of(self.plan):
                    self.plan_waits.set()
                    self._plan_changed.wait(float(path.partition("wait=")[2]))
                return (304, {}) if tag == tag_of(self.plan) else (200, self.plan)
        with self._lock:
            if self.status is not None:
                return self.status, {"detail": "as the test wants"}
            answer = self._put(path, body) if method == "PUT" else self._report(body)
            if self.lose_answers > 0:
                self.lose_answers -= 1
                return 0, None
            return answer

    def _put(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        _, _, _, job, *part = path.split("/")
        self.puts.append(job)
        if job in self.refuse:
            return self.refuse[job], {"detail": f"{job} is refused"}
        status = 200 if job in self.jobs else 201
        self.jobs[job] = (PartSpec if part else JobSpec).model_validate_json(body)
        if part:
            self.part_hosts[job] = part[1]
        return status, {}

    def _report(self, body: bytes) -> tuple[int, dict[str, Any]]:
        report = HostReport.model_validate_json(body)
        self.reports.append(report)
        key = (report.session, report.seq)
        is_new = key not in self._taken
        self._taken.add(key)
        refused = []
        for part in report.jobs if is_new else ():
            if part.job not in self.jobs:
                refused.append({"job": part.job, "reason": "unknown job; register it first"})
                continue
            self.points.setdefault(part.job, []).extend(point.iteration for point in part.points)
            if part.ended:
                self.ended.append(part.job)
                del self.jobs[part.job]
        status = "taken" if is_new else "duplicate"
        told = {"lease_seconds": 30.0, "period_seconds": self.period_seconds, "urgent": self.urgent}
        return 200, {"status": status, "refused": refused, **told}


def tag_of(plan: dict[str, Any] | None) -> str:
    """The entity tag of a plan."""
    return f'"{hash(json.dumps(plan))}"'


class _Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    def __init__(self, owner: ReporterServer, port: int, context: ssl.SSLContext | None) -> None:
        self.owner = owner
        self._context = context
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._open.add(connection)
        self.owner.connections += 1
        if self._context is not None:
            connection.settimeout(5)
            connection = self._context.wrap_socket(connection, server_side=True)
        return connection, address

    def handle_error(self, *_: Any) -> None:
        """A client that gives up is what these tests are about."""

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def cut(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    # An answer is one packet: else the two ends' timers make it take 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True

    def _answer(self) -> None:
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        authorization = self.headers.get("Authorization")
        owner.tokens.append(authorization.removeprefix("Bearer ") if authorization else None)
        status, document = owner.handle(self.command, self.path, body, self.headers.get("If-None-Match"))
        time.sleep(owner.delay)
        if document is None:
            self.close_connection = True
            return
        content = json.dumps(document).encode() if status != 304 else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if self.command == "GET":
            self.send_header("ETag", tag_of(owner.plan))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = _answer  # noqa: N815 - names that http.server looks for

    def log_message(self, *_: Any) -> None:
        """Nothing to say."""
