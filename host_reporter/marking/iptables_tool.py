"""Reads and changes the mangle table with the commands of the iptables variant that works on this host."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence

from host_reporter import tools
from host_reporter.marking import rules_text, table_version
from host_reporter.marking.families import Family, family_of
from host_reporter.marking.restorer import PACKAGE, Restorer

_LOCK_SECONDS = "5"
_TRIAL_CHAIN = f"{rules_text.CHAIN}-TRY"


class IptablesError(RuntimeError):
    """Traffic cannot be marked. The message says why."""


class IptablesTool:
    """The commands of one variant, such as ``iptables-legacy``. Its methods raise IptablesError. Not thread-safe."""

    def __init__(self, variant: str) -> None:
        self._variant, self._is_nft = variant, _is_nft(variant)
        self._family = family = family_of(variant)
        nft, legacy = f"{family.tool}-nft", f"{family.tool}-legacy"
        # Debian's alternative "iptables" may change to the other variant. The agent's rules stay in the first one.
        own, other = (nft, legacy) if self._is_nft else (legacy, nft)
        if _is_installed(own):
            self._variant = own
        self._restorer = Restorer(self._variant)
        # A killed agent may have used the other variant, whose old marks must not stay in force.
        if _is_installed(other) and (other == nft or _has_legacy_table(family)):
            with contextlib.suppress(IptablesError):
                _clear_away(other)

    def save(self) -> str:
        """Returns the mangle table's text, with its counters, as ``iptables-save -c`` prints it."""
        try:
            return rules_text.as_saved(self._restorer.listing("mangle"))
        except tools.ToolError:
            # The other command says more about what is in the way.
            saved = run([f"{self._variant}-save", "-c", "-t", "mangle"])
        if "is incompatible, use 'nft' tool" in saved:
            raise IptablesError(
                f"somebody has put rules into the table mangle that {self._family.tool} cannot show (nft list table "
                f"{self._family.nft} mangle does): move them to a table of their own"
            )
        return saved

    def commit(self, text: str) -> None:
        """Carry out a text for ``iptables-restore``, all of it or nothing."""
        try:
            self._restorer.commit(text)
        except tools.ToolError as error:
            raise IptablesError(str(error)) from error

    def version(self) -> table_version.Version | None:
        """Returns the table's version; None where only its text shows changes."""
        return table_version.read(is_nft=self._is_nft, is_ipv6=self._family.is_ipv6)

    def can(self, rule: str) -> str | None:
        """Try a rule in an unused chain, and remove it again. Returns why it is refused, or None."""
        try:
            try_rule(self._variant, rule)
        except IptablesError as error:
            return str(error)
        return None

    def remove(self) -> None:
        """Remove all our chains from the table, and end the process that makes changes."""
        try:
            # The process that is there removes them, because a new one takes longer than the removal.
            self.commit(rules_text.removal(self.save()))
        finally:
            self._restorer.close()


def find(variants: Sequence[str], action: str) -> IptablesTool:
    """Returns the first variant that can set DSCPs and do ``action``. Raises IptablesError."""
    reasons = []
    for variant in variants:
        try:
            try:
                _try_both(variant, action)
            except IptablesError:
                # A killed agent may have left a rule for a cgroup that is gone. With such a rule iptables-legacy
                # can change nothing.
                if not _clear_away(variant):
                    raise
                _try_both(variant, action)
        except IptablesError as error:
            reasons.append(f"{variant}: {error}")
        else:
            return IptablesTool(variant)
    raise IptablesError("; ".join(reasons))


def try_rule(variant: str, *rules: str) -> None:
    """Install rules in an unused chain, and remove it again. Raises IptablesError."""
    lines = "".join(f"-A {_TRIAL_CHAIN} {rule}\n" for rule in rules)
    # Two transactions of one process: where the first one is refused the tool ends, and there is no chain.
    _restore(
        variant,
        f"*mangle\n:{_TRIAL_CHAIN} - [0:0]\n{lines}COMMIT\n*mangle\n-F {_TRIAL_CHAIN}\n-X {_TRIAL_CHAIN}\nCOMMIT\n",
    )


def run(command: Sequence[str], text: str = "") -> str:
    """Returns what a command prints. Raises IptablesError."""
    try:
        return tools.run(command, text, package=PACKAGE)
    except tools.ToolError as error:
        raise IptablesError(str(error)) from error


def _try_both(variant: str, action: str) -> None:
    try_rule(variant, "-p tcp --dport 1 -m dscp --dscp 1 -j DSCP --set-dscp 0", action)


def _restore(variant: str, text: str) -> None:
    run([f"{variant}-restore", "--noflush", "-w", _LOCK_SECONDS], text)


def _clear_away(variant: str) -> bool:
    """Remove the chains that another agent left. Returns whether there were any. Raises IptablesError."""
    saved = run([f"{variant}-save", "-t", "mangle"])
    if f":{rules_text.CHAIN}" not in saved:
        return False
    _restore(variant, rules_text.removal(saved))
    return True


def _is_installed(variant: str) -> bool:
    return all(shutil.which(f"{variant}-{command}") for command in ("save", "restore"))


def _has_legacy_table(family: Family) -> bool:
    with contextlib.suppress(OSError):
        return "mangle" in family.legacy_tables.read_text().split()
    return False


def _is_nft(variant: str) -> bool:
    """Returns whether the variant keeps its rules in nf_tables. Raises IptablesError."""
    if variant.endswith(("-nft", "-legacy")):
        return variant.endswith("-nft")
    return "nf_tables" in run([variant, "--version"])
