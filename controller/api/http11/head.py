"""Parses the head of a request, or refuses it. Pure.

RFC 9112 lets a server repair many malformed heads. Two programs that repair differently see different requests in the
same bytes (request smuggling). So nothing is repaired here: a head that violates the grammar is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

MAX_LINE = 8192
"""A line of so many bytes or more, with its end, is refused."""
MAX_HEAD = 65536
"""Limits all header lines together, in bytes."""
MAX_FIELDS = 100
"""Limits the number of header lines."""

Field = tuple[str, str]
"""A header: its name in lower case, and its value without surrounding white space, each byte as a Latin-1 character."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE = re.compile(rb"(%s) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])" % _TOKEN)
_FIELD = re.compile(rb"(%s):([\t\x20-\x7e\x80-\xff]*)" % _TOKEN)
_NAME = re.compile(_TOKEN)
_NO_VALUE = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
# RFC 3986. No two alternatives begin alike, so that matching never backtracks. (Possessive quantifiers would express
# that, but Python 3.11.2 matches wrongly with them.)
_ESCAPED = rb"(?:[%s]|%%[0-9A-Fa-f]{2})*"
_CHARS = rb"A-Za-z0-9\-._~!$&'()*+,;="
_PATH_AND_QUERY = rb"(?:/%s)?(?:\?%s)?" % (_ESCAPED % (_CHARS + rb":@/"), _ESCAPED % (_CHARS + rb":@/?"))
_SERVER = rb"(?:\[[0-9A-Fa-f:.]+\]|%s)" % (_ESCAPED % _CHARS)
_AUTHORITY = rb"%s(?::[0-9]{0,5})?" % _SERVER
_ORIGIN = re.compile(rb"(?=/)" + _PATH_AND_QUERY)
_ABSOLUTE = re.compile(rb"https?://(?![:/?])(?P<host>%s)(?P<path>%s)" % (_AUTHORITY, _PATH_AND_QUERY), re.IGNORECASE)
_TUNNEL = re.compile(rb"(?!:)(?P<host>%s:[0-9]{1,5})" % _SERVER)
_HOST = re.compile(_AUTHORITY.decode())
_LENGTH = re.compile(r"[0-9]{1,18}")
_ONCE = ("host", "content-length", "content-type", "authorization")
"""Names the headers that a request may have only once, because a second value would be ambiguous."""


class HeadError(Exception):
    """The head is refused. ``status`` is that of the answer; the message names the fault."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Head:
    """A request's head. ``target`` is as sent; ``path`` is its path and query, and begins with a slash.

    ``host`` is the addressed host, from the target or the Host header. ``headers`` are by name in lower case; the
    values of repeated headers are joined by commas. ``length`` is the size of the body in bytes, or None for chunks.
    ``keeps`` says whether the connection may be used again. ``awaits`` says whether the client waits for 100 (Continue)
    before it sends the body.
    """

    method: str
    target: str
    path: str
    version: str
    host: str | None
    headers: Mapping[str, str]
    length: int | None
    keeps: bool
    awaits: bool


def read(readline: Callable[[int], bytes]) -> bytes:
    """Returns the bytes of the next head, with its empty last line, or b"" if the peer has ended the connection.

    ``readline`` returns the next line with its end, but at most the given number of bytes. Raises HeadError.
    """
    line = readline(MAX_LINE)
    if line == b"\r\n":
        # Some clients send one after a body (RFC 9112, section 2.2).
        line = readline(MAX_LINE)
    if not line:
        return b""
    if len(line) >= MAX_LINE:
        raise HeadError(HTTPStatus.REQUEST_URI_TOO_LONG, f"the request line has {MAX_LINE} bytes or more")
    _check_end(line)
    lines, size = [line], 0
    while line != b"\r\n":
        line = readline(MAX_LINE)
        if len(line) >= MAX_LINE:
            raise _too_large(f"a header line has {MAX_LINE} bytes or more")
        _check_end(line)
        size += len(line)
        if size > MAX_HEAD:
            raise _too_large(f"the headers have more than {MAX_HEAD} bytes together")
        if len(lines) > MAX_FIELDS and line != b"\r\n":
            raise _too_large(f"there are more than {MAX_FIELDS} header lines")
        lines.append(line)
    return b"".join(lines)


def parse(head: bytes) -> Head:
    """Returns the parsed head. ``head`` are the bytes that ``read`` returns. Raises HeadError."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    method, target, version = _request_line(first)
    headers: dict[str, str] = {}
    for name, value in _fields(lines):
        if name in headers and name in _ONCE:
            raise _bad(f"there are several values of {_titled(name)}; send one")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    path, authority = _localised(method, target)
    options = _listed(headers.get("connection", ""))
    is_old = version == "HTTP/1.0"
    length = _length(headers, is_old=is_old)
    return Head(
        method=method.decode(),
        target=target.decode(),
        path=path,
        version=version,
        host=_host(headers.get("host"), authority, is_old=is_old),
        headers=headers,
        length=length,
        keeps="close" not in options and (not is_old or "keep-alive" in options),
        awaits=_awaits(headers.get("expect"), is_old=is_old) and length != 0,
    )


def trailer_fault(line: bytes) -> str | None:
    """Returns the fault of a line after the chunks of a body, given without its end, or None."""
    try:
        ((name, _),) = _fields([line])
    except HeadError as error:
        return error.detail
    if name in (*_ONCE, "transfer-encoding"):
        return f"{_titled(name)} stands after the body; it belongs before it"
    return None


def _check_end(line: bytes) -> None:
    if line.endswith(b"\r\n"):
        return
    if line.endswith(b"\n"):
        raise _bad(f"the line {_shown(line[:-1])} ends with a line feed alone; a line ends with CR LF")
    raise _bad("the connection ended in the middle of the head")


def _request_line(line: bytes) -> tuple[bytes, bytes, str]:
    """Returns the method, the target and the version. Raises HeadError."""
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise _bad(
            f"the request line is {_shown(line)}; it must be a method, a target without spaces or controls, and "
            "HTTP/1.1, with one space between"
        )
    method, target, major, minor = match.groups()
    if major != b"1":
        raise HeadError(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
            f"HTTP/{major.decode()}.{minor.decode()} is not spoken here; HTTP/1.1 is",
        )
    # A later minor version is answered as the latest that is known here (RFC 9110, section 2.5).
    return method, target, "HTTP/1.0" if minor == b"0" else "HTTP/1.1"


def _fields(lines: list[bytes]) -> Iterator[Field]:
    for number, line in enumerate(lines, 1):
        match = _FIELD.fullmatch(line)
        if match is None:
            raise _bad(_field_fault(number, line))
        name, value = match.groups()
        yield name.decode().lower(), value.strip(b" \t").decode("latin-1")


def _field_fault(number: int, line: bytes) -> str:
    """Returns the fault of a header line."""
    if line[:1] in (b" ", b"\t"):
        return f"header line {number} begins with white space; a header has one line, and its name comes first"
    name, colon, value = line.partition(b":")
    if not colon:
        return f"header line {number} is {_shown(line)}; it has no colon"
    if _NAME.fullmatch(name.rstrip(b" \t")) and name[-1:] in (b" ", b"\t"):
        return f"there is white space between {_shown(name.rstrip())} and its colon; a header is written NAME: VALUE"
    if not _NAME.fullmatch(name):
        return f"header line {number} has the name {_shown(name)}, which is not valid: use letters, digits and dashes"
    wrong = _NO_VALUE.search(value)
    assert wrong is not None, "else the line would be right"
    return f"the value of {_shown(name)} has the byte 0x{wrong.group().hex()}, which no header can have"


def _localised(method: bytes, target: bytes) -> tuple[str, str | None]:
    """Returns the path and query of a target in any of its four forms (RFC 9112, section 3.2), and its authority."""
    if method == b"CONNECT":
        if match := _TUNNEL.fullmatch(target):
            return "/" + target.decode(), match["host"].decode()
    elif _ORIGIN.fullmatch(target):
        return target.decode(), None
    elif target == b"*" and method == b"OPTIONS":
        return "/*", None
    elif (match := _ABSOLUTE.fullmatch(target)) and match["host"]:
        path = match["path"].decode()
        return path if path.startswith("/") else "/" + path, match["host"].decode()
    raise _bad(
        f"the target is {_shown(target)}; it must be a path with percent-encoding and without a fragment, such as "
        "/v1/jobs, or a whole http URI"
    )


def _host(given: str | None, authority: str | None, *, is_old: bool) -> str | None:
    """Returns the addressed host. The target's authority takes precedence over Host, which must be valid too."""
    if given is None:
        if not is_old:
            raise _bad("there is no Host; a request of HTTP/1.1 has one")
        return authority
    if not _HOST.fullmatch(given):
        raise _bad(f"Host is {_shown(given.encode('latin-1'))}; it must be a name or an address, and a port at most")
    return given if authority is None else authority


def _length(headers: dict[str, str], *, is_old: bool) -> int | None:
    """Returns the length of the body in bytes, or None if it comes in chunks (RFC 9112, section 6.3)."""
    length, codings = headers.get("content-length"), headers.get("transfer-encoding")
    if codings is not None:
        if length is not None:
            raise _bad("Content-Length and Transfer-Encoding are there together; send one of them")
        if is_old:
            raise _bad("HTTP/1.0 has no Transfer-Encoding; send Content-Length")
        named = _listed(codings)
        if named == ["chunked"]:
            return None
        if named[-1] == "chunked" and "chunked" not in named[:-1] and all(map(_is_coding, named)):
            raise HeadError(HTTPStatus.NOT_IMPLEMENTED, f"transfer coding {named[0][:40]!r} is not spoken here")
        raise _bad(f"Transfer-Encoding is {_shown(codings.encode('latin-1'))}; chunked, once and last, is all there is")
    if length is None:
        return 0
    if _LENGTH.fullmatch(length) is None:
        raise _bad(f"Content-Length is {length[:40]!a}; send the body's bytes as a number of at most 18 digits")
    return int(length)


def _listed(value: str) -> list[str]:
    """Returns the members of a list in lower case.

    Only space and tab are stripped, as HTTP has no other white space.
    """
    return [member.strip(" \t").lower() for member in value.split(",")]


def _is_coding(name: str) -> bool:
    return _NAME.fullmatch(name.encode("latin-1")) is not None


def _awaits(expected: str | None, *, is_old: bool) -> bool:
    if expected is None:
        return False
    if expected.lower() != "100-continue":
        raise HeadError(
            HTTPStatus.EXPECTATION_FAILED, f"Expect is {expected[:40]!a}; 100-continue is all that can be met"
        )
    return not is_old


def _titled(name: str) -> str:
    return name.title()


def _shown(text: bytes) -> str:
    return ascii(text[:40].decode("latin-1"))


def _bad(detail: str) -> HeadError:
    return HeadError(HTTPStatus.BAD_REQUEST, detail)


def _too_large(detail: str) -> HeadError:
    return HeadError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
