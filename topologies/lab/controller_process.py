"""The controller of an emulated network: its settings, its process, and its REST API as the lab uses it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import requests
import urllib3

from controller.config.sections import MIN_TOKEN
from controller.wire import Status
from controller.wire.event_stream import Sent, lines, sent_events
from topologies import checkout, management
from topologies.box.processors import at_once
from topologies.emulation import OPENFLOW_PORT, Emulation, inventory
from topologies.errors import LabError, LabInputError

API_PORT = 8080
URL = f"http://{management.ROOT_ADDRESS}:{API_PORT}"
CHOSEN_BY = "TRAINYARD_LAB_TOKEN"
"""Names the environment variable that may have the token of operators, so that somebody can watch a run. Without it
each controller has a secret one."""
GATE_PERIODS = 5
"""The gate lives for so many periods, so several renewals may be late before the priorities end."""

JOB_DSCPS = ["1-47", "49-62"]
"""The DSCPs that jobs get where they have their own, because an experiment may have more jobs than there are DSCPs for
local use. 48 is that of RoCE's congestion notification, and 63 that of acknowledgements in most presets."""

_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.2
_STOP_SECONDS = 10.0
_STREAM_SECONDS = 40.0
"""A stream that is silent for so long has ended. There is a sign of life each 15 s."""


class ControllerSilentError(LabError):
    """The controller's API does not answer."""


def chosen_token() -> str | None:
    """Returns the token that the environment chooses; None where it chooses none. Raises LabInputError."""
    token = os.environ.get(CHOSEN_BY)
    if token and len(token) < MIN_TOKEN:
        raise LabInputError(f"{CHOSEN_BY} has {len(token)} characters; a token has {MIN_TOKEN} at least")
    return token or None


class ControllerProcess:
    """One controller on one network. ``folder`` holds its settings, journal, tokens and log.

    Its API is called at ``url``, and has ``answer_seconds`` for an answer. ``settings`` go into its settings file.
    ``plugins``: a folder, from the top of the checkout, in which it finds packages beside those that are installed;
    empty: there is none.
    """

    def __init__(
        self,
        emulation: Emulation,
        folder: Path,
        policy: str,
        *,
        options: Mapping[str, Any] | None = None,
        classes: int,
        period_seconds: float,
        plugins: str = "",
        url: str = URL,
        answer_seconds: float = _ANSWER_SECONDS,
        **settings: Any,
    ) -> None:
        self.url = url
        self._answer_seconds = answer_seconds
        self._emulation = emulation
        self._plugins = plugins
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = folder / "journal.sqlite"
        self.log = folder / "controller.log"
        self._token = chosen_token() or secrets.token_hex(16)
        self._host_tokens = {host: secrets.token_hex(16) for host in emulation.hosts}
        self._config = folder / "controller.yaml"
        document = self._settings(classes, period_seconds)
        document["api"] |= settings.pop("api", {})
        if "dscp" in (settings.get("identity"), settings.get("mode")):
            document["dscp"] = {"preset": self._emulation.dscp, "jobs": JOB_DSCPS}
        document |= settings
        document |= {"policy": policy, "policy_options": dict(options or {})}
        self._config.write_text(json.dumps(document, indent=1))  # JSON is YAML
        self._config.chmod(0o600)
        self._process: subprocess.Popen[bytes] | None = None
        self._session = self._new_session()

    def _new_session(self) -> requests.Session:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {self._token}"
        session.trust_env = False
        return session

    def _settings(self, classes: int, period_seconds: float) -> dict[str, Any]:
        own_queues = self._emulation.own_queues
        return {
            "api": {
                "host": management.ROOT_ADDRESS,
                "port": API_PORT,
                "token": self._token,
                "host_tokens": self._host_tokens,
                # The agents of different hosts report the trials of one study.
                "host_stages": "any",
            },
            "openflow": {"host": "127.0.0.1", "port": OPENFLOW_PORT},
            "period_seconds": period_seconds,
            "gate_seconds": max(3, round(GATE_PERIODS * period_seconds)),
            "classes": classes,
            "dscp": self._emulation.dscp,
            "queues": "existing" if own_queues else "managed",
            "forwarding": "paths" if self._emulation.cables() else "normal",
            "journal": str(self.journal),
            "hosts": inventory(self._emulation),
            "links": [asdict(cable) for cable in self._emulation.cables()],
        }

    def host_token(self, host: str) -> str:
        """The token with which a host reports for itself."""
        return self._host_tokens[host]

    @property
    def runs(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id. Raises LabError where the controller does not run."""
        if self._process is None or self._process.poll() is not None:
            raise LabError(f"the controller does not run; its log ends: {self.last_words()}")
        return self._process.pid

    def start(self) -> None:
        """Start the process; ``wait_ready`` waits for it."""
        # A real controller has a machine of its own. This one shares a processor with all that it controls.
        command = [*at_once(), sys.executable, str(Path(sys.executable).with_name("ryu-manager")), "controller.app"]
        environment = {**os.environ, "TRAINYARD_CONFIG": str(self._config)}
        if self._plugins:
            path = (str((checkout.ROOT / self._plugins).resolve()), environment.get("PYTHONPATH", ""))
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        with self.log.open("ab") as log:
            self._process = self._emulation.popen(None, command, env=environment, stdout=log, stderr=log)

    def wait_ready(self, *, seconds: float = 60.0) -> Status:
        """Wait until a plan is in force, and every switch is proven that is to enforce it, or an agent marks packets
        where hosts alone do. Raises LabError with what is missing.
        """
        switches = len(self._emulation.bridges)
        status: Status | None = None

        def ready() -> bool:
            nonlocal status
            status = self.try_status()
            if status is None or status.epoch == 0:
                return False
            if "switches" in status.enforce:
                return sum(s.ready for s in status.switches) == switches
            return not status.not_ready

        if not self.wait(ready, seconds) or status is None:
            missing = "the API does not answer" if status is None else "; ".join((*status.not_ready, *status.problems))
            raise LabError(f"the controller is not ready after {seconds:g} s: {missing or 'no plan is in force'}")
        return status

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for a condition while the controller runs. Raises LabError where the controller ends.

        Returns whether the condition came true within ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while True:
            # This comes first, because the condition's own error about an ended controller would say less.
            if self._process is not None:
                _alive = self.pid
            if condition():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)

    def try_status(self) -> Status | None:
        """The status; None while the API does not answer."""
        try:
            return self.status()
        except ControllerSilentError:
            return None

    def status(self) -> Status:
        """``GET /v1/status``. Raises LabError."""
        return Status.model_validate(self.call("GET", "/v1/status"))

    def metrics(self) -> str:
        """``GET /metrics``, as text. Raises LabError."""
        return self._ask("GET", "/metrics").text

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Make one call as the operator. Returns the answer's JSON, None for no body. Raises LabError."""
        return _json(self._ask(method, path, body))

    def reader(self) -> Callable[[str], Any]:
        """Returns what reads the JSON at a path, as ``call`` does, over a connection of its own, for another thread."""
        session = self._new_session()
        return lambda path: _json(self._ask("GET", path, session=session))

    def _ask(
        self, method: str, path: str, body: Any = None, *, session: requests.Session | None = None
    ) -> requests.Response:
        used = session if session is not None else self._session
        try:
            answer = used.request(method, self.url + path, json=body, timeout=self._answer_seconds)
        except requests.RequestException as error:
            if self._process is not None:
                _alive = self.pid
            raise ControllerSilentError(
                f"{method} {path}: the controller does not answer ({type(error).__name__}); "
                f"its log ends: {self.last_words()}"
            ) from error
        if not answer.ok:
            raise LabError(f"{method} {path}: {answer.status_code} {answer.text.strip()[:500]}")
        return answer

    def events(self, last: str) -> Iterator[Sent]:
        """Yields the events after the id ``last`` until the stream ends. Raises ControllerSilentError.

        It has a connection of its own, and may run in another thread.
        """
        session = self._new_session()
        session.headers["Last-Event-ID"] = last
        try:
            answer = session.get(f"{self.url}/v1/events", stream=True, timeout=_STREAM_SECONDS)
            if not answer.ok:
                raise ControllerSilentError(f"GET /v1/events: {answer.status_code} {answer.text.strip()[:500]}")
            yield from sent_events(lines(answer.raw.read1))
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            raise ControllerSilentError(f"GET /v1/events: the stream has ended ({type(error).__name__})") from error
        finally:
            session.close()

    def stop(self) -> None:
        """Stop the controller as an operator would, by SIGTERM."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the controller, so that it cannot clean up."""
        self._end(signal.SIGKILL)

    def last_words(self) -> str:
        """Return the end of the log in one line."""
        lines = self.log.read_text(errors="replace").strip().splitlines() if self.log.exists() else []
        return " | ".join(lines[-3:]) or "(nothing)"

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _json(answer: requests.Response) -> Any:
    """Returns the JSON of an answer; None without a body. Raises LabError where it is something else."""
    try:
        return answer.json() if answer.content else None
    except requests.JSONDecodeError as error:
        asked = f"{answer.request.method} {answer.request.path_url}"
        raise LabError(f"{asked}: the controller's answer is not JSON: {error}") from error
