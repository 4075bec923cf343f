"""The messages on the audit: who has changed what."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from controller.wire.base import Message


class AuditRecord(Message):
    """One record of the audit: a change, or a try that was refused. Secrets are never in it."""

    number: int
    """The number of the record, from 1, without gaps."""
    time: float
    """When it was made, in seconds since the Unix epoch."""
    who: str
    """The name of the caller. unknown: the caller did not prove who it is. trainyard: the controller itself. file: a
    file at the controller's machine has changed (reload: automatic). signal: the controller got SIGHUP."""
    role: str
    """The role of the caller. none: it is not known. controller: the controller itself. machine: whoever may change
    files and send signals at the controller's machine."""
    proof: Literal["none", "token", "oidc", "certificate"] | None = None
    """How the caller proved who it is: two callers with the same name may differ in this. oidc: by a token of the
    identity provider. none: nothing was asked for. Absent: it did not, or it is the machine or the controller."""
    address: str | None = None
    """The IP address that the request came from; of the role machine, the name of the controller's machine."""
    action: str
    """What was called, as in this reference. file: a file of the audit begins. start: the controller has started.
    reload: the settings were read again."""
    path: str | None = None
    """The path of the request."""
    before: dict[str, Any] | None = None
    """What was changed, as it was before. Of a job or the settings, only what differs. Absent: it was not there, or is
    not kept."""
    after: dict[str, Any] | None = None
    """The same after the change."""
    status: int | None = None
    """The HTTP status of the answer."""
    outcome: Literal["done", "refused", "failed"]
    """done: the change was made. refused: the caller may not make it, or it was wrong. failed: the controller could not
    make it."""
    detail: str | None = None
    """Why it was refused or failed."""
    lost: int | None = None
    """How many records before this one were lost because the file could not be written."""
    skipped: int | None = None
    """How many refused tries before this one have no record, because there were too many."""
    previous: str
    """The hash of the record before."""
    hash: str
    """The SHA-256 of this record without this member, in hexadecimal digits."""


class AuditTrail(Message):
    """Body of ``GET /v1/audit``: records of the audit, the oldest first."""

    records: Annotated[tuple[AuditRecord, ...], Field(strict=False)]
    """The records after ``since``, or else the newest."""
    newest: int
    """The number of the newest record of all. 0: there is none."""
    newest_hash: str
    """The hash of the newest record. Keep it elsewhere to notice if records at the end are removed."""
    lost: int
    """How many records were lost since the start of the controller."""
    problem: str | None = None
    """Why the file cannot be written. null: it can, or there is none."""
