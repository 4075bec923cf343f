"""A long-lived ``iptables-restore``: one process for all changes, since starting one costs far more than a change.

The tool commits each table when it has read it, and with ``-v`` it prints the comments in its input. So a comment after
each change confirms that the change was carried out. The tool holds the lock of the tables only during a change.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time

from host_reporter import tools
from host_reporter.tools import ToolError

PACKAGE = "iptables"
"""This Debian package has the tool."""

ANSWER_SECONDS = 20.0
"""A change that is not answered within this time has failed."""

_END_SECONDS = 1.0
"""A process that does not end within this time is killed."""


class Restorer:
    """Makes changes through a process of ``variant``, which is started when needed. It is not thread-safe."""

    def __init__(self, variant: str) -> None:
        self._variant = variant
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal = -1
        self._changes = 0

    def commit(self, text: str) -> None:
        """Carry out one table's changes (``*table`` to ``COMMIT``), all or nothing. Raises ToolError."""
        if self._process is not None and self._process.poll() is not None:
            self._end()  # something has killed the process
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None
        self._changes += 1
        answer = f"# change {self._changes} made"
        try:
            process.stdin.write(f"{text}{answer}\n".encode())
            process.stdin.flush()
            is_done = self._wait_for(answer.encode())
        except OSError:
            is_done = False
        if not is_done:
            raise ToolError(self._end())

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._end()

    def _start(self) -> None:
        # The tool may wait for the lock without a limit, because this class has its own. With a limit the tool sets an
        # alarm, which also interrupts its reading, and it would end then.
        command = [f"{self._variant}-restore", "--noflush", "-v", "-w"]
        # On a terminal the tool writes each line at once. Into a pipe it would write when its buffer is full.
        self._terminal, other = os.openpty()
        try:
            self._process = tools.start(command, package=PACKAGE, stdout=other, stderr=subprocess.PIPE)
        except ToolError:
            os.close(self._terminal)
            raise
        finally:
            os.close(other)

    def _wait_for(self, answer: bytes) -> bool:
        """Returns whether the answer comes before the process ends and within ANSWER_SECONDS."""
        output = b""
        deadline = time.monotonic() + ANSWER_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._terminal], [], [], left)[0]:
                return False
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:
                # The process has ended, which closes the terminal.
                return False
            output += piece
            if answer in output:
                return True
            output = output[-len(answer) :]
        return False

    def _end(self) -> str:
        """End the process. Returns its error message."""
        process, self._process = self._process, None
        assert process is not None and process.stdin is not None and process.stderr is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        complaint = tools.complaint(process.stderr.read().decode(errors="replace"))
        process.stderr.close()
        os.close(self._terminal)
        return complaint or f"{self._variant}-restore ended with status {process.returncode}"
