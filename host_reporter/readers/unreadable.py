"""Files that cannot be read line by line, told by their first bytes. Pure."""

from __future__ import annotations

_BEGINNINGS = {
    b"\x1f\x8b": "it is compressed (gzip): name the file that the job writes, not its compressed copy",
    b"BZh": "it is compressed (bzip2): name the file that the job writes, not its compressed copy",
    b"\xfd7zXZ\x00": "it is compressed (xz): name the file that the job writes, not its compressed copy",
    b"\x28\xb5\x2f\xfd": "it is compressed (Zstandard): name the file that the job writes, not its compressed copy",
    b"PK\x03\x04": "it is a ZIP archive: name the file that the job writes",
    b"SQLite format 3": "it is a SQLite database, of which no progress is read",
    b"\x89HDF": "it is an HDF5 file, of which no progress is read",
    b"\xff\xfe\0\0": "it is text in UTF-32: let the job write UTF-8",
    b"\xff\xfe": "it is text in UTF-16: let the job write UTF-8",
    b"\xfe\xff": "it is text in UTF-16: let the job write UTF-8",
}


def what_it_is(first: bytes) -> str | None:
    """Returns why a file with these first bytes cannot be read, and what would help; None where it can."""
    for beginning, reason in _BEGINNINGS.items():
        if first.startswith(beginning):
            return reason
    if _is_utf16(first):
        return "it is text in UTF-16: let the job write UTF-8"
    return None


def _is_utf16(first: bytes) -> bool:
    """Returns whether every second one of the first bytes is NUL, as in UTF-16 without a mark."""
    sample = first[:64]
    if len(sample) < 8:
        return False
    even, odd = sample[::2], sample[1::2]
    return (not any(odd) and 0 not in even) or (not any(even) and 0 not in odd)
