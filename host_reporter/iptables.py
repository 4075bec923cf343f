"""Applies marks with iptables, whichever variant works here, and reads the counters of what was marked."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

from host_reporter import marking
from host_reporter.marking import AnyMark
from host_reporter.restorer import RestoreError, Restorer

VARIANTS = ("iptables", "iptables-legacy")
"""The system's own choice first; where the kernel lacks nf_tables only the legacy variant works."""

_LOCK_SECONDS = "5"
_RUN_SECONDS = 20.0


class IptablesError(RuntimeError):
    """Traffic cannot be marked; the message says why."""


class Marker:
    """This network namespace's marks. Not for several threads."""

    def __init__(self) -> None:
        self._variant: str | None = None
        self._restorer: Restorer | None = None
        self._marks: tuple[AnyMark, ...] = ()
        self._generation = 0
        self._sent = marking.SentBytes()
        self._uncounted: tuple[AnyMark, ...] | None = None
        self._is_up = False
        self._acknowledgements = True

    def apply(self, marks: Sequence[AnyMark]) -> None:
        """Mark what ``marks`` say, and nothing else, from one moment to the next. Raises IptablesError.

        Without any, too: then no traffic leaves with a class's DSCP.
        """
        wanted = tuple(marks)
        if self._is_up:
            text = marking.new_classes(self._marks, wanted, self._generation)
            if text is not None:
                if text:
                    self._commit(text)
                self._marks = wanted
            else:
                if self._uncounted is not None:
                    # The idle chain still has counts of the change before.
                    self._count(self._save())
                self._switch_over(wanted, jump=False)
            return
        self._switch_over(wanted, jump=marking.jumps(self._save()) == 0)

    def open(self) -> None:
        """Mark nothing until the next ``apply``, so that all traffic is alike. Raises IptablesError.

        The bytes sent so far are remembered: the jobs go on.
        """
        if self._is_up and self._marks:
            self._count(self._save())
            self._sent.change(self._marks)
            self._switch_over((), jump=False)
            self._uncounted = None

    def sent_bytes(self) -> Mapping[str, marking.Sent]:
        """Bytes that left with a mark, by job, since its first mark. Raises IptablesError.

        Bytes of IP packets: with headers, and what was sent again. Puts the marks back if someone removed them.
        """
        if self._is_up:
            saved = self._save()
            self._count(saved)
            if marking.jumps(saved) == 0:
                self._switch_over(self._marks, jump=True)
        return self._sent.totals()

    @property
    def is_marking(self) -> bool:
        """Whether there are rules to count, and to put back if someone removed them."""
        return self._is_up

    @property
    def marks_acknowledgements(self) -> bool:
        """Whether jobs' acknowledgements have their own DSCP, and no program's packets have."""
        return self._is_up and self._acknowledgements

    def remove(self) -> None:
        """Take the chains away. Raises IptablesError."""
        if self._is_up:
            self._is_up, self._marks, self._uncounted = False, (), None
            if self._restorer is not None:
                self._restorer.close()
            self._run([f"{self._variant}-restore", "--noflush", "-w", _LOCK_SECONDS], marking.removal(self._save()))

    def _switch_over(self, wanted: tuple[AnyMark, ...], *, jump: bool) -> None:
        generation = 1 - self._generation
        try:
            text, alone = (
                marking.switch_over(wanted, generation, jump=jump, alone=alone, acknowledgements=self._acknowledgements)
                for alone in (False, True)
            )
        except marking.MarkError as error:
            raise IptablesError(str(error)) from error
        emptied = False
        try:
            self._commit(text)
        except IptablesError:
            # The older iptables gives the kernel the whole table again, which refuses a cgroup that is gone by now.
            self._commit(alone)
            emptied = True
        if emptied:
            self._uncounted = None
            self._sent.change(wanted)
        elif self._is_up:
            self._uncounted = self._marks
        else:
            self._sent.change(wanted)
        self._marks, self._generation, self._is_up = wanted, generation, True

    def _commit(self, text: str) -> None:
        if self._restorer is None:
            assert self._variant is not None
            self._restorer = Restorer(self._variant)
        try:
            self._restorer.commit(text)
        except RestoreError as error:
            raise IptablesError(str(error)) from error

    def _count(self, saved: str) -> None:
        counts = marking.counts(saved)
        if self._uncounted is not None:
            self._sent.count(self._uncounted, counts.get(marking.GENERATIONS[1 - self._generation], ()))
            self._sent.change(self._marks)
            self._uncounted = None
        self._sent.count(self._marks, counts.get(marking.GENERATIONS[self._generation], ()))

    def _save(self) -> str:
        if self._variant is None:
            self._variant = self._find()
        return self._run([f"{self._variant}-save", "-c", "-t", "mangle"])

    def _find(self) -> str:
        """The variant that can do what is needed here; one that can tell acknowledgements, if there is any."""
        try:
            variant, self._acknowledgements = self._find_with(marking.ACKNOWLEDGEMENT), True
        except IptablesError:
            variant, self._acknowledgements = self._find_with("-j DSCP --set-dscp 0"), False
        return variant

    def _find_with(self, action: str) -> str:
        reasons = []
        for variant in VARIANTS:
            try:
                try:
                    self._try(variant, action)
                except IptablesError:
                    # An agent that was killed may have left rules of a cgroup that is gone by now: with one of them
                    # the older iptables can change nothing.
                    if not self._clear_away(variant):
                        raise
                    self._try(variant, action)
            except IptablesError as error:
                reasons.append(f"{variant}: {error}")
            else:
                return variant
        raise IptablesError("; ".join(reasons))

    def _try(self, variant: str, action: str) -> None:
        """With rules that nothing leads to and that are gone after. Raises IptablesError."""
        chain = f"{marking.CHAIN}-TRY"
        rules = f"-A {chain} -p tcp --dport 1 -m dscp --dscp 1 -j DSCP --set-dscp 0\n-A {chain} {action}\n"
        text = f"*mangle\n:{chain} - [0:0]\n{rules}COMMIT\n"
        restore = [f"{variant}-restore", "--noflush", "-w", _LOCK_SECONDS]
        self._run(restore, text)
        self._run(restore, f"*mangle\n-F {chain}\n-X {chain}\nCOMMIT\n")

    def _clear_away(self, variant: str) -> bool:
        """Take away what another agent left; whether there was any. Raises IptablesError."""
        saved = self._run([f"{variant}-save", "-t", "mangle"])
        if f":{marking.CHAIN}" not in saved:
            return False
        self._run([f"{variant}-restore", "--noflush", "-w", _LOCK_SECONDS], marking.removal(saved))
        return True

    @staticmethod
    def _run(command: Sequence[str], text: str = "") -> str:
        try:
            done = subprocess.run(
                command,
                input=text,
                capture_output=True,
                text=True,
                errors="replace",  # comments of others' rules may be in any encoding
                check=True,
                timeout=_RUN_SECONDS,
            )
        except FileNotFoundError as error:
            raise IptablesError(f"{command[0]} is not installed; install the package iptables") from error
        except PermissionError as error:
            raise IptablesError(f"{command[0]} may not be run; the agent needs CAP_NET_ADMIN") from error
        except subprocess.CalledProcessError as error:
            told = " ".join(error.stderr.split())
            raise IptablesError(told[:300] or f"{command[0]} ended with status {error.returncode}") from error
        except subprocess.TimeoutExpired as error:
            raise IptablesError(f"{command[0]} did not end within {_RUN_SECONDS:g} s") from error
        return done.stdout
