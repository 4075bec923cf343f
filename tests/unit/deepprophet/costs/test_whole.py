"""The fit of whole iterations: what calls, modules and gradients cost beside the operators themselves."""

from __future__ import annotations

import random

import pytest

from deepprophet.costs import costs as costing
from deepprophet.costs import whole
from deepprophet.costs.fit import fit
from deepprophet.costs.measured import Measurement
from deepprophet.graph.graph import Graph
from tests.support.prophet_world import calibration, context, key, operator

FLOOR, CALL, MODULE, GRADIENT = 2e-6, 5e-6, 4e-6, 7e-6
ALONE = {8: 12e-6, 9: 400e-6, 10: 2e-6}
TABLE = {key(size=size): Measurement(s, s, s, s) for size, s in ALONE.items()}


def drawn(draw: random.Random) -> Graph:
    operators = [
        operator(phase, size=draw.choice(list(ALONE)), modules=draw.choice((0, 0, 1, 3)), gradients=phase == "backward")
        for phase in ("forward", "backward", "optimizer")
        for _ in range(draw.randint(1, 60))
    ]
    return Graph(tuple(operators), (), (), 1, "float32")


def really(graph: Graph) -> float:
    """A machine on which calls, modules and gradients cost the same everywhere."""
    seconds = 0.0
    for each in graph.operators:
        alone = next(s for size, s in ALONE.items() if key(size=size) == each.key)
        seconds += alone - FLOOR + CALL + MODULE * each.modules + GRADIENT * each.gradients
    return seconds


def test_a_model_unlike_all_others_is_told_from_what_its_calls_cost() -> None:
    draw = random.Random(3)
    graphs = [drawn(draw) for _ in range(40)]
    rows = [whole.row(graph, TABLE, 0.0, FLOOR) for graph in graphs]
    found = whole.context(rows, [really(graph) for graph in graphs], [str(n % 8) for n in range(40)], 0)
    known = (
        calibration(dict.fromkeys(TABLE, 0.0), contexts=(found,)).with_table(TABLE).model_copy(update={"floor": FLOOR})
    )
    # A scan: many tiny operators, and hardly a module.
    scan = Graph(tuple(operator(size=10) for _ in range(500)), (), (), 1, "float32")
    told = sum(part.seconds for part in costing.costs(scan, known, {}))
    assert told == pytest.approx(really(scan), rel=0.05)
    assert found.low > 0.9 and found.high < 1.1


def test_costs_have_what_modules_and_gradients_take() -> None:
    known = calibration({key(): 5e-6}, contexts=(context(calls=(1e-6, 0.0, 0.0), module=3e-6, gradient=7e-6),))
    one = Graph((operator(modules=2, gradients=1), operator(modules=0)), (), (), 1, "float32")
    first, second = costing.costs(one, known.model_copy(update={"floor": 4e-6}), {})
    assert first.seconds == pytest.approx(1e-6 + 1e-6 + 6e-6 + 7e-6)
    assert second.seconds == pytest.approx(2e-6)
    below = costing.costs(one, known.model_copy(update={"floor": 9e-6}), {})[1]
    assert below.seconds == pytest.approx(1e-6)


def test_the_spread_is_that_of_kinds_that_were_left_out() -> None:
    """Rows of a kind tell each other; a kind of its own is told worse by the others."""
    rows = [(1.0, float(n)) for n in range(1, 21)]
    seconds = [n if n <= 16 else 3.0 * n for n in range(1, 21)]
    kinds = ["odd" if n > 16 else "plain" for n in range(1, 21)]
    by_kind, by_tenth = fit(rows, seconds, groups=kinds), fit(rows, seconds)
    assert by_kind.factors == by_tenth.factors
    assert by_kind.high > by_tenth.high
