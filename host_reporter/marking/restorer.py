"""A long-lived ``iptables-restore``: one process for all changes, since starting one costs far more than a change.

The tool commits each table as it reads it, and with ``-v`` repeats comments: one after every change is the answer
that it was carried out. It holds the tables' lock during a change alone.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time

ANSWER_SECONDS = 20.0


class RestoreError(RuntimeError):
    """A change was refused, or there is nobody to make it; the message says why."""


class Restorer:
    """Changes through one process of ``variant``; started when needed, anew after a refusal. Not for threads."""

    def __init__(self, variant: str) -> None:
        self._variant = variant
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal = -1
        self._changes = 0

    def commit(self, text: str) -> None:
        """Carry out one table's changes (``*table`` to ``COMMIT``), all or nothing. Raises RestoreError."""
        if self._process is not None and self._process.poll() is not None:
            self._end()  # somebody has killed it
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None
        self._changes += 1
        answer = f"# change {self._changes} made"
        try:
            process.stdin.write(f"{text}{answer}\n".encode())
            process.stdin.flush()
            made = self._wait_for(answer.encode())
        except OSError:
            made = False
        if not made:
            raise RestoreError(self._end())

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._end()

    def _start(self) -> None:
        # It may wait for the lock as long as it likes: we do not. With a limit of its own it sets an alarm, which then
        # interrupts its reading, and it takes that for the end.
        command = [f"{self._variant}-restore", "--noflush", "-v", "-w"]
        # A terminal, so that the answers come line by line instead of when a buffer is full.
        self._terminal, other = os.openpty()
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=other, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            os.close(self._terminal)
            missing = isinstance(error, FileNotFoundError)
            reason = "is not installed; install the package iptables" if missing else f"cannot be run: {error.strerror}"
            raise RestoreError(f"{command[0]} {reason}") from error
        finally:
            os.close(other)

    def _wait_for(self, answer: bytes) -> bool:
        """Whether the answer comes; not if the process ends, or is silent for ANSWER_SECONDS."""
        told = b""
        deadline = time.monotonic() + ANSWER_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._terminal], [], [], left)[0]:
                return False
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:
                # The other side is closed: the process has ended.
                return False
            told += piece
            if answer in told:
                return True
            told = told[-len(answer) :]
        return False

    def _end(self) -> str:
        """End the process; what it said in complaint."""
        process, self._process = self._process, None
        assert process is not None and process.stdin is not None and process.stderr is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        complaint = " ".join(process.stderr.read().decode(errors="replace").split())[:300]
        process.stderr.close()
        os.close(self._terminal)
        return complaint or f"{self._variant}-restore ended with status {process.returncode}"
