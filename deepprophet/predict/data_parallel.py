"""A copy of the model at each worker, or at each group of workers that cut its layers: DistributedDataParallel. Pure.

[known] Of several batches whose gradients are added up, only the last one's are exchanged, where the others are within
``no_sync`` (Li and others, VLDB 2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deepprophet.predict.buckets import Bucket
from deepprophet.predict.exchange import Group, Transfer, Wire
from deepprophet.predict.layout import Layout, Work
from deepprophet.predict.schedule import Plan, Step, tasks_of

Reduced = dict[int, tuple[Transfer, ...]]
"""By an operator's place what the ranks of a group add up after it."""


def layout(work: Work, cut: Sequence[Bucket], wire: Wire, together: Sequence[Group] = ()) -> Layout:
    """Lay out an iteration. ``together``: the groups whose ranks compute each layer together, if any do."""
    graph = work.graph
    reduced: Reduced = {}
    for reduction in graph.reductions:
        transfer = wire.all_reduce(reduction.bytes, together)
        reduced[reduction.place] = (*reduced.get(reduction.place, ()), transfer)
    buckets = tuple(tuple(wire.of_bucket(bucket.bytes)) for bucket in cut)
    before = tuple(wire.of_buffers(graph.buffer_bytes))
    steps = [*_first_batches(work, reduced), *_steps(work, graph.later, cut, reduced)]
    back = sum(work.wrapping.byte * p.bytes / 2 for p in graph.parameters if p.ready is not None)
    after = (Step("copy back", back), Step("optimizer", work.optimizer()))
    sent = [*before, *(transfer for transfers in buckets for transfer in transfers)]
    sent += [transfer for step in steps for transfer in step.reduced]
    return Layout(tuple(tasks_of(Plan(before, tuple(steps), buckets, after))), tuple(sent))


def _first_batches(work: Work, reduced: Reduced) -> Iterator[Step]:
    """Yield the steps of all micro-batches but the last: the first one's, and those of the others together."""
    graph = work.graph
    if graph.micro_batches == 1:
        return
    yield from _pieces(work, range(graph.later), reduced, {}, {})
    again = graph.micro_batches - 2
    if again:
        later = range(graph.later, _end(work))
        for step in _pieces(work, later, reduced, {}, {}):
            yield replace(
                step, seconds=step.seconds * again, reduced=tuple(_repeated(part, again) for part in step.reduced)
            )


def _steps(work: Work, first: int, cut: Sequence[Bucket], reduced: Reduced) -> Iterator[Step]:
    """Yield the last micro-batch: the operators between two gradients that complete a bucket are one step."""
    closes: dict[int, list[int]] = {}
    for number, bucket in enumerate(cut):
        closes.setdefault(bucket.ready, []).append(number)
    wrapped: dict[int, float] = {}
    for parameter in work.graph.parameters:
        if parameter.ready is not None:
            # Half of the copying is into the bucket, half of it back.
            more = work.wrapping.parameter + work.wrapping.byte * parameter.bytes / 2
            wrapped[parameter.ready] = wrapped.get(parameter.ready, 0.0) + more
    yield from _pieces(work, range(first, _end(work)), reduced, closes, wrapped)


def _pieces(
    work: Work, places: range, reduced: Reduced, closes: dict[int, list[int]], wrapped: dict[int, float]
) -> Iterator[Step]:
    held, phase = 0.0, "forward"
    for place in places:
        operator = work.graph.operators[place]
        if operator.phase != phase:
            yield Step(phase, held)
            held, phase = 0.0, operator.phase
        held += work.seconds[place] + wrapped.get(place, 0.0)
        for number in closes.get(place, ()):
            yield Step(phase, held, number)
            held = 0.0
        if place in reduced:
            yield Step(phase, held, reduced=reduced[place])
            held = 0.0
    yield Step(phase, held)


def _end(work: Work) -> int:
    """One after the last operator of the passes."""
    first, _ = work.graph.between("optimizer")
    return first or len(work.graph.operators)


def _repeated(transfer: Transfer, times: int) -> Transfer:
    demand = tuple(part.model_copy(update={"bytes": part.bytes * times}) for part in transfer.demand)
    return replace(transfer, seconds=transfer.seconds * times, work=transfer.work * times, demand=demand)
