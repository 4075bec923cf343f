"""Formats of traces that people have at hand, recognised by their structure, so that an error calls them by name.

Pure. A reader asks only after it has refused a text as its own format, so that no text of its own is ever taken for
another's. Sources: the workload generator of Sincronia (SIGCOMM 2018), Microsoft's Philly traces (ATC 2019), Helios
traces of SenseTime (SC 2021), Alibaba's cluster-trace-gpu-v2020 (PAI, NSDI 2022), Gavel's traces (OSDI 2020), the
coflow benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

HEAD = 64 * 1024
"""Look at this many characters: a format shows in its first lines."""

COFLOW_TRACE = "a coflow trace (coflow benchmark)"
SNAPSHOT = "a snapshot of trainyard order"

_PAI_COLUMNS = frozenset(
    {"job_name", "task_name", "inst_id", "inst_num", "inst_name", "plan_gpu", "plan_cpu", "gpu_type"}
)
_PAI_STATES = frozenset({"Terminated", "Failed", "Running", "Waiting"})
_PAI_STATE_AT = {6: 3, 10: 3}
"""The column of the state, by the number of columns of a row; these files are published without a header."""
_HELIOS_COLUMNS = frozenset({"job_id", "gpu_num", "cpu_num", "state", "submit_time", "duration"})
_PHILLY_KEYS = ('"jobid"', '"attempts"', '"submitted_time"', '"vc"')
_GAVEL_FIELDS = 6
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?", re.ASCII)


def recognised(text: str, own: str) -> str | None:
    """Returns what a text looks like, in words that follow "this looks like".

    None where it is nothing that is known here, or in the reader's ``own`` format, as in COFLOW_TRACE or SNAPSHOT.
    """
    head = text[:HEAD]
    lines = [line for line in head.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    format_name = next((what for what, fits in _FORMATS.items() if fits(head, lines)), None) if lines else None
    return None if format_name == own else format_name


def _philly(head: str, _lines: list[str]) -> bool:
    return head.lstrip()[:1] in ("[", "{") and sum(key in head for key in _PHILLY_KEYS) >= 3


def _snapshot(head: str, _lines: list[str]) -> bool:
    return head.lstrip().startswith("{") and '"hosts"' in head and '"jobs"' in head


def _helios(_head: str, lines: list[str]) -> bool:
    return _columns(lines[0]) >= _HELIOS_COLUMNS


def _pai(_head: str, lines: list[str]) -> bool:
    if len(_columns(lines[0]) & _PAI_COLUMNS) >= 2:
        return True
    fields = lines[0].strip().split(",")
    at = _PAI_STATE_AT.get(len(fields))
    return at is not None and fields[at] in _PAI_STATES


def _gavel(_head: str, lines: list[str]) -> bool:
    """A job type, a command, an option of it that says how many steps, the steps, a time, GPUs; tabs between."""
    fields = lines[0].strip().split("\t")
    if len(fields) < _GAVEL_FIELDS or "python" not in fields[1]:
        return False
    return any(field.startswith("-") for field in fields[2:]) and _is_number(fields[-1]) and _is_number(fields[-2])


def _sincronia(_head: str, lines: list[str]) -> bool:
    """After the two counts a line a coflow: id, arrival, flows, sources, destinations, and three numbers a flow."""
    if not _are_counts(lines[0]) or len(lines) < 2:
        return False
    words = lines[1].split()
    if not all(_is_number(word) for word in words[1:]) or len(words) < 5 or not words[2].isdigit():
        return False
    # The head may end within a line.
    wanted = 5 + 3 * int(words[2][:9])
    return len(words) == wanted or (len(lines) == 2 and len(words) < wanted and sum(map(len, lines)) > HEAD // 2)


def _coflow_trace(_head: str, lines: list[str]) -> bool:
    return _are_counts(lines[0]) and (len(lines) == 1 or ":" in lines[1].split()[-1])


_FORMATS: Mapping[str, Callable[[str, list[str]], bool]] = {
    "Philly's job log (cluster_job_log, a JSON list of jobs with their attempts)": _philly,
    SNAPSHOT: _snapshot,
    "Helios' job log (cluster_log.csv, a row a job with its GPUs and times)": _helios,
    "a table of Alibaba's PAI trace (cluster-trace-gpu-v2020, a row a job, task or instance)": _pai,
    "Gavel's trace (a line a job: its type, command, steps, arrival and GPUs, with tabs between)": _gavel,
    "a trace of Sincronia's workload generator (a line a coflow: five numbers, and three a flow)": _sincronia,
    COFLOW_TRACE: _coflow_trace,
}


def _columns(line: str) -> frozenset[str]:
    return frozenset(name.strip().strip('"').lower() for name in line.split(","))


def _are_counts(line: str) -> bool:
    words = line.split()
    return len(words) == 2 and all(word.isascii() and word.isdigit() for word in words)


def _is_number(word: str) -> bool:
    return _NUMBER.fullmatch(word.strip()) is not None
