"""HTTP to the controller over one connection that is kept: few packets, little processor time."""

from __future__ import annotations

import http.client
import json
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 15.0
MAX_ANSWER_BYTES = 64 * 2**20
_UNAUTHORIZED = 401


class AddressError(ValueError):
    """The controller's address, the token or the certificate cannot be used; the message says what would be right."""


class UnreachableError(OSError):
    """No answer came; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, entity tag and body of an answer, and its date as RFC 9110 writes it."""

    status: int
    tag: str | None
    body: bytes
    date: str | None = None

    @property
    def detail(self) -> str:
        """What a problem document says, or as much of the answer as helps."""
        try:
            document = json.loads(self.body)
            return str(document["detail"])[:500]
        except (ValueError, KeyError, TypeError, RecursionError):
            return f"HTTP status {self.status}"


@dataclass(frozen=True)
class Address:
    """Where the controller is and how it knows us. Files are read anew at every connection, so they can be changed."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    """The client certificate that is shown in the place of a token. It needs ``key_file``, and https."""
    key_file: Path | None = None

    def __post_init__(self) -> None:
        """Raises AddressError."""
        try:
            parts = urlsplit(self.url)
            is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_right = False
        if not is_right or parts.query or parts.fragment or parts.username:
            raise AddressError(f"controller: {self.url!r} is no address; it looks like http://127.0.0.1:8080")
        if self.token_file is not None:
            self.token()
        if (self.certificate_file is None) != (self.key_file is None):
            raise AddressError("certificate_file: a certificate needs its key; give certificate_file and key_file")
        if self.certificate_file is not None and urlsplit(self.url).scheme == "http":
            raise AddressError(
                "certificate_file: a certificate is shown over https only; change the controller's address"
            )
        self.context()

    @property
    def is_open(self) -> bool:
        """Whether the token would cross the network unencrypted."""
        parts = urlsplit(self.url)
        local = parts.hostname in ("localhost", "::1") or (parts.hostname or "").startswith("127.")
        return self.token_file is not None and parts.scheme == "http" and not local

    def token(self) -> str | None:
        """The token, if there is one. Raises AddressError."""
        if self.token_file is None:
            return None
        try:
            token = self.token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no ASCII text"
            raise AddressError(f"token_file: {self.token_file} cannot be read: {reason}") from error
        if not token.isprintable() or not token:
            raise AddressError(f"token_file: {self.token_file} must hold one line, the token")
        return token

    def token_is_public(self) -> bool:
        """Returns whether others than its owner can read the token's file."""
        return self.token_file is not None and bool(self.token_file.stat().st_mode & (stat.S_IROTH | stat.S_IRGRP))

    def context(self) -> ssl.SSLContext | None:
        """How to check the controller's certificate; None without TLS. Raises AddressError."""
        if urlsplit(self.url).scheme == "http":
            return None
        import ssl  # noqa: PLC0415 - only who uses TLS pays for its import

        try:
            context = ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file else None)
        except OSError as error:
            raise AddressError(f"ca_file: {self.ca_file} cannot be used: {error.strerror or error}") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate_file is not None:
            try:
                # An empty password: where the key has one, nobody must be asked at a terminal.
                context.load_cert_chain(self.certificate_file, self.key_file, password="")
            except (OSError, ValueError) as error:
                raise AddressError(
                    f"certificate_file: {self.certificate_file} and {self.key_file} cannot be used together: {error}"
                ) from error
        return context


class Connection:
    """One kept connection; for one thread at a time."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._parts = urlsplit(address.url)
        self._headers: dict[str, str] = {}
        self._http: http.client.HTTPConnection | None = None
        self._is_aborted = False

    def request(
        self,
        method: str,
        path: str,
        body: str | None = None,
        *,
        known_tag: str | None = None,
        prefer: str | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> Answer:
        """One call, waiting ``seconds`` for the answer. Raises UnreachableError; the call may have been carried out.

        A kept connection that the other side has closed meanwhile is tried again once, anew. ``prefer`` is a preference
        (RFC 7240), which a controller that does not know it leaves aside.
        """
        headers = {"If-None-Match": known_tag} if known_tag is not None else {}
        if prefer is not None:
            headers["Prefer"] = prefer
        if body is not None:
            headers["Content-Type"] = "application/json"
        was_kept = self._http is not None
        try:
            return self._exchange(method, path, body, headers, seconds)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            if not was_kept or self._is_aborted or isinstance(error, TimeoutError):
                raise UnreachableError(_reason(error)) from error
        try:
            return self._exchange(method, path, body, headers, seconds)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise UnreachableError(_reason(error)) from error

    def close(self) -> None:
        """End the connection; the next call makes another."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def abort(self) -> None:
        """For another thread: end a call that waits, and every later one, with UnreachableError."""
        # In this order: who connects meanwhile either sees the flag or is seen here.
        self._is_aborted = True
        connection = self._http
        sock = connection.sock if connection is not None else None
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it was not connected any more

    def _exchange(self, method: str, path: str, body: str | None, headers: dict[str, str], seconds: float) -> Answer:
        connection = self._http if self._http is not None else self._connect()
        if self._is_aborted:
            raise UnreachableError("the call was ended")
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        encoded = body.encode() if body is not None else None
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, encoded, {**self._headers, **headers})
        except OSError as error:
            # In TLS 1.3 a controller that refuses our certificate may have said so and closed by now.
            if connection.sock is not None and not isinstance(error, TimeoutError):
                connection.sock.recv(1)  # raises the reason
            raise
        response = connection.getresponse()
        content = response.read(MAX_ANSWER_BYTES + 1)
        if len(content) > MAX_ANSWER_BYTES:
            raise ValueError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
        if response.will_close or response.status == _UNAUTHORIZED:
            # The token in the file may be another one by now; it is read when a connection is made.
            self.close()
        return Answer(response.status, response.getheader("ETag"), content, response.getheader("Date"))

    def _connect(self) -> http.client.HTTPConnection:
        token = self._address.token()
        self._headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        host, port = str(self._parts.hostname), self._parts.port
        # It is made anew, because a certificate may have been renewed.
        context = self._address.context()
        if context is not None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=CONNECT_SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        connection.connect()
        self._http = connection
        return connection


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    objection = getattr(error, "verify_message", None)  # of ssl.SSLCertVerificationError
    if objection:
        hint = "; --ca-file names the authority" if "issuer" in objection or "self" in objection else ""
        return f"its certificate is not trusted: {objection.rstrip('.')}{hint}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
