"""The entries of a tokens file: who has a token or a certificate, and what it allows. Pure.

The file is a mapping in YAML. Each key is a name, and its value is the entry of that name, in one line:

    night-shift: {role: operator, hash: "sha256:..."}
    vision: {role: tenant, users: [ann, bob], prefix: vision-, max_jobs: 8, max_weight: 2, hash: "sha256:..."}
    ops-laptop: {role: operator, certificate: ops.example.org, expires: 2027-03-01}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from controller.access.caller import Caller, Proof, Role, Tenancy
from controller.access.tokens.hashes import TokenHash, is_made_here, mark_of
from controller.documents.document import Document, FieldPath
from controller.documents.explained_model import ExplainedModel
from controller.documents.faults import described
from controller.wire import NAME_PATTERN, PRINTABLE_PATTERN

MAX_ENTRIES = 1000
"""A file may have this many entries. A request compares its token with all of them, which takes 0.3 ms."""
_NAME = re.compile(NAME_PATTERN)
_IN_PLACE_OF_NAME = "a token stands in the place of a name; trainyard token --hash makes the hash of a token"
_OF_TENANTS = ("users", "prefix", "max_jobs", "max_weight")


def _as_hash(value: object) -> object:
    """Check a hash. What is no hash may be a token that was pasted here, so no message shows it."""
    if not isinstance(value, str):
        raise ValueError("it must be a text in quotes, as trainyard token prints it")
    TokenHash(value)
    return value


class TokenEntry(ExplainedModel):
    """One entry of a tokens file. It has either a hash or a certificate."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    role: Literal["operator", "viewer", "tenant", "host", "enrol"]
    """What the caller may do."""
    hash: Annotated[str | None, BeforeValidator(_as_hash)] = None
    """The hash of the token, as ``trainyard token`` prints it."""
    certificate: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    """The common name (CN) of a client certificate that api.client_authority has signed."""
    expires: Annotated[date, Field(strict=False)] | None = None
    """The last day, in UTC, on which the entry is valid."""
    host: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None
    """For the role host: the name of the host. Without it the entry's name is the host's."""
    users: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=127, pattern=PRINTABLE_PATTERN)], ...], Field(strict=False)
    ] = ()
    """For the role tenant: the users whose jobs it may see and change. Without any, the entry's name is the user."""
    prefix: Annotated[str, Field(pattern=NAME_PATTERN)] | None = None
    """For the role tenant: it may also see and change jobs whose names begin so, and new jobs must be named so."""
    max_jobs: Annotated[int, Field(ge=0, le=10_000)] = 16
    """For the role tenant: how many of its jobs may run at a time."""
    max_weight: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """For the role tenant: the greatest weight that it may give a job."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> TokenEntry:
        if (self.hash is None) == (self.certificate is None):
            raise ValueError("an entry has either a hash or a certificate; trainyard token makes a token and its hash")
        if any(is_made_here(text) for text in (self.certificate, self.prefix, self.host, *self.users) if text):
            raise ValueError(_IN_PLACE_OF_NAME)
        given = self.model_fields_set
        if self.role != "tenant" and (wrong := [name for name in _OF_TENANTS if name in given]):
            raise ValueError(f"{wrong[0]} is for the role tenant only")
        if self.role != "host" and "host" in given:
            raise ValueError("host is for the role host only")
        return self

    def facts(self) -> dict[str, Any]:
        """Returns what the file says of the entry, with a mark in the place of the hash."""
        given: dict[str, Any] = self.model_dump(mode="json", exclude={"hash"}, exclude_unset=True)
        return given | ({"token": mark_of(self.hash)} if self.hash is not None else {})

    def caller(self, name: str, proof: Proof) -> Caller:
        """Returns the caller that has this entry."""
        role = Role(self.role)
        if role is Role.HOST:
            return Caller(name, role, host=self.host or name, proof=proof)
        if role is Role.TENANT:
            tenancy = Tenancy(self.users or (name,), self.prefix, self.max_jobs, self.max_weight)
            return Caller(name, role, tenancy=tenancy, proof=proof)
        return Caller(name, role, proof=proof)


@dataclass(frozen=True)
class _Row:
    """An entry, ready to be compared with. ``ends_at`` is in seconds since the Unix epoch."""

    caller: Caller
    token_hash: TokenHash | None
    certificate: str | None
    ends_at: float

    @classmethod
    def of(cls, name: str, entry: TokenEntry) -> _Row:
        proof: Proof = "token" if entry.hash is not None else "certificate"
        ends_at = float("inf")
        if entry.expires is not None:
            last = entry.expires
            ends_at = datetime(last.year, last.month, last.day, tzinfo=UTC).timestamp() + 86400.0
        token_hash = TokenHash(entry.hash) if entry.hash is not None else None
        return cls(entry.caller(name, proof), token_hash, entry.certificate, ends_at)


class TokenTable:
    """The entries of a tokens file, without those that have expired. ``now`` is in seconds since the Unix epoch."""

    def __init__(self, entries: Mapping[str, TokenEntry]) -> None:
        self._rows = [_Row.of(name, entry) for name, entry in entries.items()]
        self.facts: Mapping[str, Any] = {name: entry.facts() for name, entry in entries.items()}
        """What the file says of each entry, by name, without hashes."""

    def __len__(self) -> int:
        return len(self._rows)

    def of_token(self, token: bytes, now: float) -> Caller | None:
        """Returns the caller with this token, or None. It compares all entries, so that the time reveals nothing."""
        caller = None
        for row in self._rows:
            if row.token_hash is not None and row.token_hash.is_of(token) and now < row.ends_at:
                caller = row.caller
        return caller

    def of_certificate(self, common_name: str, now: float) -> Caller | None:
        """Returns the caller whose certificate has this common name, or None."""
        for row in self._rows:
            if row.certificate == common_name and now < row.ends_at:
                return row.caller
        return None


def parse(document: Document, hosts: Collection[str]) -> tuple[dict[str, TokenEntry], list[tuple[FieldPath, str]]]:
    """Returns the entries of a file, and its faults: the path of each in the document, and what is wrong.

    ``hosts`` are those in the settings. No fault shows a value that may be a token.
    """
    data = document.data if document.data is not None else {}
    if not isinstance(data, dict):
        return {}, [((), "it must hold entries as 'name: {role: ..., hash: ...}', as trainyard token prints them")]
    entries: dict[str, TokenEntry] = {}
    faults: list[tuple[FieldPath, str]] = []
    if len(data) > MAX_ENTRIES:
        faults.append(((), f"it has {len(data)} entries; {MAX_ENTRIES} is the most"))
        data = {}
    for name, value in data.items():
        found = list(_faults_of(str(name), value, entries, hosts))
        faults += [((str(name), *path), said) for path, said in found]
    return entries, faults


def _faults_of(
    name: str, value: Any, entries: dict[str, TokenEntry], hosts: Collection[str]
) -> list[tuple[FieldPath, str]]:
    """Put an entry among ``entries``, or return what is wrong with it."""
    if (problem := _form_fault(name, value)) is not None:
        return [((), problem)]
    try:
        entry = TokenEntry.model_validate(value)
    except ValidationError as error:
        return described(error, value, TokenEntry)
    if entry.role == "host" and (entry.host or name) not in hosts:
        return [((), f"{entry.host or name} is no host in the settings")]
    if entry.certificate is not None and any(other.certificate == entry.certificate for other in entries.values()):
        return [(("certificate",), "another entry has this certificate; each needs its own")]
    entries[name] = entry
    return []


def _form_fault(name: str, value: Any) -> str | None:
    """Returns why a name and its value are no entry; None: they may be one."""
    if _NAME.fullmatch(name) is None:
        return "the name of an entry has letters, digits, dots, dashes and underscores, 63 at most"
    if is_made_here(name):
        return _IN_PLACE_OF_NAME
    if not isinstance(value, dict):
        return "it must be a mapping with a role and a hash, as trainyard token prints it"
    return None
