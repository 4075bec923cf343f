"""What crosses some links, by job and over time: a row for every stretch in which a job's rate there stays the same."""

from __future__ import annotations

from simulator.kernel.jit import entry
from simulator.kernel.state import NOW, ROWS, State

STEADY = 1e-9
"""A rate that changes by less than this share stays the same."""


@entry
def note_rates(s: State) -> None:
    """Look at the watched links; to be called after every change of rates, and once at the end."""
    now = s.clk[NOW]
    hops = s.paths.shape[1]
    jobs = len(s.job)
    for w in range(len(s.watched)):
        link = s.watched[w]
        for job in range(jobs):
            s.rate_seen[job] = 0.0
        for k in range(s.link[link].presents):
            item = s.cell[s.present[link, k], link].head
            while item >= 0:
                bundle = item // hops
                s.rate_seen[s.lane[s.bundle[bundle].lane].job] += s.bundle[bundle].rate * s.bundle[bundle].flows
                item = s.chain[item, 0]
        for job in range(jobs):
            before, after = s.rate_on[w, job], s.rate_seen[job]
            if abs(after - before) <= STEADY * before:
                continue
            if before > 0.0 and now > s.rate_since[w, job]:
                row = s.num[ROWS]
                s.num[ROWS] += 1
                s.rows[row, 0] = w
                s.rows[row, 1] = s.rate_since[w, job]
                s.rows[row, 2] = now
                s.rows[row, 3] = job
                s.rows[row, 4] = before
            s.rate_on[w, job] = after
            s.rate_since[w, job] = now
