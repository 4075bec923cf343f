"""What a hostile OpenFlow peer costs: a million messages through the check, with Ryu's parser and handlers behind it.

The messages are a real switch's with faults in them and random structures, from fixed seeds, a thousandth of them
straight into Ryu's parser too, to show what the check is for.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from pathlib import Path
from statistics import fmean

from ryu.ofproto import ofproto_v1_3 as ofp

from evaluation.bench.figures import Bench, Figure
from evaluation.bench.support.openflow.messages import Case, Generator, parts, parts_request, recorded
from evaluation.bench.support.openflow.reader import Reader, Tally, faults_without_check
from simulator.reports.statistics import mean_interval

ROUNDS = 20
MESSAGES = 50_000
"""Of each round."""
UNCHECKED = 1000
LIMIT_MS = 20.0
MEMORY_LIMIT_MB = 20.0
_LARGEST = 65_535


def run(_folder: Path, _data: Path | None) -> Bench:
    """Measure."""
    faults_unchecked = faults_without_check(Generator(0).cases(UNCHECKED))
    tallies: list[Tally] = []
    resident_mb = [_resident_mb()]
    # As in the controller: a walk through all that is loaded is no message's time.
    gc.collect()
    gc.freeze()
    for seed in range(ROUNDS):
        reader = Reader()
        for case in Generator(seed).cases(MESSAGES):
            reader.read(case)
        tallies.append(reader.tally)
        resident_mb.append(_resident_mb())
    gc.unfreeze()
    check_us = [1e6 * tally.check_seconds / MESSAGES for tally in tallies]
    parse_us = [1e6 * tally.parse_seconds / tally.parsed for tally in tallies]
    outcomes = sum((tally.outcomes for tally in tallies), Counter[str]())
    faults = [fault for tally in tallies for fault in tally.faults]
    largest = _largest()
    total = ROUNDS * MESSAGES
    return Bench(
        figures=(
            Figure(
                f"Of {total:,} messages, what hangs Ryu or makes it raise",
                metric="faults",
                unit="",
                value=len(faults),
                baseline=len(faults_unchecked),
                baseline_name=f"of {UNCHECKED:,} of them without the check",
                ci95=(math.nan, math.nan),
                limit=1,
            ),
            Figure(
                "A message is checked",
                metric="check",
                unit="us",
                value=fmean(check_us),
                baseline=fmean(parse_us),
                baseline_name="Ryu reads one that has passed",
                ci95=mean_interval([1 - ours / ryu for ours, ryu in zip(check_us, parse_us, strict=True)]),
            ),
            Figure(
                "The longest that one of them holds up the loop",
                metric="worst_message",
                unit="ms",
                value=1e3 * max(max(tally.worst_check, tally.worst_parse) for tally in tallies),
                baseline=1e3 * max(tally.worst_check for tally in tallies),
                baseline_name="the check alone",
                ci95=(math.nan, math.nan),
                limit=LIMIT_MS,
            ),
            Figure(
                "An answer of 64 KiB, 520 rules, is checked and cut",
                metric="largest_check",
                unit="ms",
                value=1e3 * largest.check_seconds,
                baseline=1e3 * largest.parse_seconds,
                baseline_name=f"Ryu reads its {largest.parsed} pieces",
                ci95=(math.nan, math.nan),
                limit=LIMIT_MS,
            ),
            Figure(
                "Memory grows from the first round's end to the last's",
                metric="memory",
                unit="MB",
                value=resident_mb[-1] - resident_mb[1],
                baseline=resident_mb[1],
                baseline_name="resident after the first round",
                ci95=(math.nan, math.nan),
                limit=MEMORY_LIMIT_MB,
            ),
        ),
        details={
            "messages": total,
            "messages_per_second": total / sum(tally.check_seconds + tally.parse_seconds for tally in tallies),
            "shares": {outcome: count / total for outcome, count in outcomes.most_common()},
            "worst_piece_of_the_largest_ms": 1e3 * largest.worst_parse,
            "resident_mb": resident_mb,
            "faults": faults[:10],
            "unchecked_hangs": sum("HangError" in fault for fault in faults_unchecked),
        },
    )


def _largest() -> Tally:
    """The longest answer that there is, of a real switch's rules."""
    told = [data for session in recorded() for kind, data in session if kind == "tells"]
    rules = max((data[16:] for data in told if data[8:10] == b"\0\1"), key=len)
    case = Case(parts(ofp.OFPMP_FLOW, rules * ((_LARGEST - 16) // len(rules))), parts_request(ofp.OFPMP_FLOW))
    Reader().read(case)  # Ryu fills caches at the first
    reader = Reader()
    reader.read(case)
    return reader.tally


def _resident_mb() -> float:
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6
