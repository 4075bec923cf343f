"""SaSP's pure core in every order of events that hypothesis finds: bounds hold, orders agree, all ends in a flush."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sasp.core.agreement import Agreement
from sasp.core.chunks import Layout
from sasp.core.clocks import Clocks
from sasp.core.leads import Leads
from sasp.core.order import ChunkQueue, Turns
from sasp.core.scheme import Scheme, Versions

ITERATIONS = 5
SCHEMES = (
    *(Scheme(name, sending=sending) for name in ("bsp", "asp") for sending in ("after", "overlap", "sasp")),
    *(Scheme("ssp", s, sending) for s in (1, 2, 3) for sending in ("after", "overlap", "sasp")),
    *(Scheme(name, 2, "sasp") for name in ("bsp", "asp")),
)


def flushed(clocks: Clocks) -> bool:
    """Returns whether all that was computed is synchronised."""
    return clocks.communicated >= clocks.computed


class Rank:
    """One rank of an all-reduce job: computes when its clocks allow it, and takes part in rounds."""

    def __init__(self, layout: Layout, leads: list[list[int]], enough: int) -> None:
        """``leads``: by layer, those of the first iterations and those that follow. ``enough``: for a round."""
        self.layers = len(layout.sizes)
        self.leads = leads
        self.enough = enough
        self.clocks = Clocks(self.layers, 0)
        self.agreement = Agreement(layout)
        self.set_leads()
        self.order: list[tuple[int, int]] = []
        self.at = 0
        self.forward = True
        self.arrived: dict[tuple[int, int], int] = {}

    def set_leads(self) -> None:
        """All ranks change their leads at the same iterations."""
        self.clocks.set_leads(self.leads[0])
        self.agreement.set_leads(self.leads.pop(0), self.clocks.computed + 1)

    def can_compute(self) -> bool:
        if self.clocks.computed == ITERATIONS:
            return False
        return not self.forward or self.clocks.may_compute(self.at)

    def compute(self) -> None:
        """One layer's forward, or one layer's backward."""
        if self.forward:
            layer, computing = self.at, self.clocks.computed + 1
            assert computing - self.clocks.synchronised(layer) <= self.clocks.leads[layer] + 1
            self.at += 1
            if self.at == self.layers:
                self.forward = False
            return
        self.at -= 1
        self.agreement.ready_now(self.at)
        if self.at == 0:
            self.forward = True
            self.clocks.end_iteration()
            if self.leads:
                self.set_leads()

    def joins(self) -> bool:
        return self.agreement.has_unsent or self.agreement.has_news_of(self.enough)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(2, 3), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_all_ranks_send_the_same_chunks_in_the_same_order_within_the_bound(data, changes, ranks, sizes):
    elements, enough = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    layout = Layout(sizes, 2)
    by_layer = st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes))
    leads = data.draw(st.lists(by_layer, min_size=changes, max_size=changes))
    all_ranks = [Rank(layout, list(leads), enough) for _ in range(ranks)]
    flight: list[tuple[int, int]] = []
    steps = 0
    while True:
        steps += 1
        assert steps < 10_000
        moves = [("compute", rank) for rank in all_ranks if rank.can_compute()]
        if all(rank.joins() for rank in all_ranks):
            moves.append(("round", None))
        if flight:
            moves.append(("arrive", None))
        if not moves:
            break
        move, rank = data.draw(st.sampled_from(moves)) if len(moves) > 1 else moves[0]
        if move == "compute":
            rank.compute()
        elif move == "round":
            least = [min(counts) for counts in zip(*(one.agreement.ready for one in all_ranks), strict=True)]
            taken = []
            for one in all_ranks:
                one.agreement.learn(least)
                taken.append(one.agreement.dequeue(elements))
                one.order += taken[-1]
            assert all(chunks == taken[0] for chunks in taken)
            lengths = [layout.chunks[chunk].stop - layout.chunks[chunk].start for _iteration, chunk in taken[0]]
            assert sum(lengths[:-1]) < elements
            assert sum(lengths) >= elements or not all_ranks[0].agreement.has_unsent
            flight += taken[0]
        else:
            iteration, chunk = flight.pop(0)
            layer = layout.chunks[chunk].layer
            for one in all_ranks:
                count = one.arrived[layer, iteration] = one.arrived.get((layer, iteration), 0) + 1
                if count == len(layout.of(layer)):
                    one.clocks.synchronise(layer, iteration)
    # Nothing can move any more: all is computed, all has arrived.
    for rank in all_ranks:
        assert rank.clocks.computed == ITERATIONS
        assert flushed(rank.clocks)
        assert rank.order == all_ranks[0].order
        assert len(rank.order) == ITERATIONS * len(layout)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(SCHEMES), st.integers(1, 3), st.integers(1, 3))
def test_a_parameter_servers_workers_stay_within_their_bound_and_all_is_answered(data, scheme, workers, chunks):
    """A chunk a layer. The network may hold back any message for as long as it likes. Who has done all of its own
    iterations leaves, perhaps before it has the last answers, and holds nobody back from then on."""
    wanted = data.draw(st.lists(st.integers(0, ITERATIONS), min_size=workers, max_size=workers))
    patient = data.draw(st.lists(st.booleans(), min_size=workers, max_size=workers))
    there = set(range(workers))
    books = Versions(workers, chunks, scheme)
    clocks = [Clocks(chunks, scheme.lead) for _ in range(workers)]
    up = [[] for _ in range(workers)]
    down = [[] for _ in range(workers)]
    seen = [[[0] * workers for _ in range(chunks)] for _ in range(workers)]
    applied = [[0] * workers for _ in range(chunks)]
    steps = 0
    while True:
        steps += 1
        assert steps < 10_000
        moves = [
            ("compute", w)
            for w in range(workers)
            if clocks[w].computed < wanted[w] and all(clocks[w].may_compute(layer) for layer in range(chunks))
        ]
        moves += [
            ("leave", w)
            for w in there
            if clocks[w].computed == wanted[w] and not up[w] and (flushed(clocks[w]) or not patient[w])
        ]
        moves += [("push", w) for w in range(workers) if up[w]]
        moves += [("answer", w) for w in range(workers) if down[w]]
        if not moves:
            break
        move, w = data.draw(st.sampled_from(moves)) if len(moves) > 1 else moves[0]
        if move == "compute":
            iteration = clocks[w].computed + 1
            if scheme.bound is not None:
                for row in seen[w]:
                    for count, all_there_are in zip(row, wanted, strict=True):
                        assert count >= min(iteration - 1 - scheme.bound, all_there_are)
            clocks[w].end_iteration()
            up[w] += [(chunk, iteration) for chunk in range(chunks)]
        elif move == "push":
            # Any chunk of the oldest iteration first, as a priority queue at the sender gives them.
            chunk, iteration = up[w].pop(0)
            applied[chunk][w] = iteration
            down_now = books.push(w, chunk, iteration)
            for one, answered in down_now:
                assert one in there
                down[one].append((chunk, answered, list(applied[chunk])))
        elif move == "leave":
            there.remove(w)
            down[w].clear()
            for chunk, one, answered in books.leave(w):
                assert one in there
                down[one].append((chunk, answered, list(applied[chunk])))
        else:
            chunk, iteration, contents = down[w].pop(0)
            clocks[w].synchronise(chunk, iteration)
            seen[w][chunk] = contents
    assert not there
    for w in range(workers):
        assert clocks[w].computed == books.clock(w) == wanted[w]
        assert flushed(clocks[w]) or not patient[w]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4), st.integers(0, 3))
def test_older_gradients_are_never_due_later_than_newer_ones(changes, lead):
    leads, since, due = Leads(1, lead), 1, 0
    for later, changed in [*changes, (3, 0)]:
        for iteration in range(since, since + later):
            assert leads.due(0, iteration) >= max(due, iteration)
            due = leads.due(0, iteration)
        since += later
        leads.change([changed], since)


@given(st.booleans(), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)) | st.none(), max_size=60))
def test_the_queue_gives_the_oldest_iteration_and_then_the_front_first(supersede, actions):
    queue, waiting = ChunkQueue(supersede=supersede), []
    for action in actions:
        if action is not None:
            queue.put(*action)
            chunk, iteration = action
            same = [one for one in waiting if one[1] == chunk and supersede]
            for one in same:
                one[2] = max(one[2], iteration)
            if not same:
                waiting.append([iteration, chunk, iteration])
            continue
        taken = queue.dequeue()
        if not waiting:
            assert taken is None
            continue
        first = min(waiting)
        waiting.remove(first)
        assert taken == (first[1], first[2])
    assert len(queue) == len(waiting)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), unique_by=lambda one: one[0]))
def test_first_in_first_out_is_what_it_says(chunks):
    queue = ChunkQueue("fifo")
    for chunk in chunks:
        queue.put(*chunk)
    assert [queue.dequeue() for _ in chunks] == chunks


@given(
    st.dictionaries(st.integers(0, 5), st.integers(0, 4), min_size=1),
    st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=30),
)
def test_a_straggler_that_can_take_a_chunk_gets_it(waiting, steps):
    turns, now = Turns(patience=1.0), 0.0
    for writable in steps:
        now += 0.25
        one, again = turns.pick(waiting, writable, now)
        least = {w for w, clock in waiting.items() if clock == min(waiting.values())}
        if least & writable:
            assert one in least & writable
        elif one is not None:
            assert one in writable
            assert one in waiting
        else:
            assert again is None or 0 < again <= 1.0


@given(st.integers(1, 4), st.integers(1, 200))
def test_who_is_always_writable_is_never_starved_by_a_blocked_straggler(others, rounds):
    """The straggler's link is dead: the others get a chunk every so often."""
    turns = Turns(patience=0.5)
    waiting = {0: 0} | dict.fromkeys(range(1, others + 1), 5)
    writable = set(range(1, others + 1))
    served = sum(turns.pick(waiting, writable, now * 0.1)[0] is not None for now in range(rounds))
    assert served >= rounds // 6


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 17))
def test_chunks_cover_every_layer_once_and_in_order(sizes, length):
    layout = Layout(sizes, length)
    for layer, size in enumerate(sizes):
        covered = [i for number in layout.of(layer) for i in range(*layout.chunks[number][2:])]
        assert covered == list(range(size))
        assert {layout.chunks[number].layer for number in layout.of(layer)} == {layer}
    assert [chunk.layer for chunk in layout.chunks] == sorted(chunk.layer for chunk in layout.chunks)
    assert max(chunk.stop - chunk.start for chunk in layout.chunks) <= length
