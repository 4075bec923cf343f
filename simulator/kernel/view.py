"""What a job has sent and has left, by host, read from the state for a snapshot."""

from __future__ import annotations

from simulator.kernel.jit import entry, inner
from simulator.kernel.relay import left_of
from simulator.kernel.state import F8, I4, NOW, SENDING, State


@entry
def left_by_host(s: State, job: int, src: I4, dst: I4, out: F8, into: F8) -> None:
    """Bytes that a job of one iteration still sends from each host (into ``out``) and to each host (``into``).

    ``src`` and ``dst`` are the ends of the paths (``tables.Ends``).
    """
    now = s.clk[NOW]
    out[:] = 0.0
    into[:] = 0.0
    serving = 0
    for lane in range(s.job[job].first, s.job[job].end):
        for step in range(s.lane[lane].first, s.lane[lane].end):
            # Of a step that is being sent only the bundles that are not there yet are looked at.
            sending = step == s.lane[lane].step and s.lane[lane].state == SENDING and not s.step[step].relay
            begin = s.step[step].first
            for place in range(begin, begin + s.lane[lane].left if sending else s.step[step].end):
                bundle = s.active[place] if sending else place
                if s.bundle[bundle].rate > 0.0:
                    serving = 1
                left = left_of(s, bundle, now)
                if left > 0.0:
                    left *= s.bundle[bundle].flows
                    path = s.bundle[bundle].path
                    out[src[path]] += left
                    into[dst[path]] += left
    s.job[job].served = serving


@entry
def sent_by_host(s: State, job: int, src: I4, out: F8) -> None:
    """Bytes that have left each host for a job since it began."""
    out[:] = 0.0
    _add_sent(s, job, src, out)


@entry
def sent_by_jobs(s: State, jobs: I4, src: I4, begin: I4, hosts: I4, out: F8, sent: F8) -> None:
    """Bytes that have left each host for each of some jobs since it began; notes which of them send now.

    The hosts from which job i sends are ``hosts[begin[i]:begin[i + 1]]``, and ``sent`` is by the same places. ``out``,
    a place for each host of the network, is room to add up in.
    """
    for i in range(len(jobs)):
        for k in range(begin[i], begin[i + 1]):
            out[hosts[k]] = 0.0
        s.job[jobs[i]].served = _add_sent(s, jobs[i], src, out)
        for k in range(begin[i], begin[i + 1]):
            sent[k] = out[hosts[k]]


@inner
def _add_sent(s: State, job: int, src: I4, out: F8) -> int:
    """Add what a job has sent to ``out``, by host; 1 if it sends something now, else 0."""
    now = s.clk[NOW]
    serving = 0
    for lane in range(s.job[job].first, s.job[job].end):
        current = s.lane[lane].step
        for step in range(s.lane[lane].first, s.lane[lane].end):
            rounds = s.lane[lane].done + (1 if step < current else 0)
            partly = step == current and s.lane[lane].state == SENDING
            for bundle in range(s.step[step].first, s.step[step].end):
                whole = s.more[bundle].bytes * max(s.more[bundle].chunks, 1)
                sent = whole * rounds
                if partly:
                    if s.bundle[bundle].rate > 0.0:
                        serving = 1
                    sent += whole - left_of(s, bundle, now)
                out[src[s.bundle[bundle].path]] += s.bundle[bundle].flows * sent
    return serving


@entry
def paired(out: F8, into: F8, src: I4, dst: I4, size: F8) -> int:
    """Few pairs of hosts with these sums a host (the first's bytes go to the first that takes some ...); how many.

    ``src``, ``dst`` and ``size`` take them, and must have room for as many as both have hosts together.
    """
    hosts = len(out)
    i = k = pairs = 0
    gives = takes = 0.0
    while True:
        while gives <= 0.0 and i < hosts:
            gives = out[i]
            i += 1
        while takes <= 0.0 and k < hosts:
            takes = into[k]
            k += 1
        if gives <= 0.0 and takes <= 0.0:
            return pairs
        # Both sum up to the same but for rounding, so at the end one side may have a grain left: it goes to the last.
        amount = min(gives, takes) if gives > 0.0 and takes > 0.0 else max(gives, takes)
        src[pairs], dst[pairs], size[pairs] = i - 1, k - 1, amount
        pairs += 1
        gives -= amount
        takes -= amount
