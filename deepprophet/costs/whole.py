"""What operators cost in whole iterations beyond what they cost alone, fitted to those of the calibration. Pure.

[ours] The fit has few factors, so that it holds for models that are unlike all of the set: what near and far inputs
take against being measured alone, what bytes and new pages take, and what calls do that are not the operators' own: by
phase, a module of the model, and a gradient that is put in its place. How far off it is is told by kinds of models that
it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deepprophet.costs.calibration import Context
from deepprophet.costs.costs import VIEW_WEIGHT, above
from deepprophet.costs.fit import fit
from deepprophet.costs.measured import Measurement
from deepprophet.graph.graph import PHASES, Graph

PRIORS = (1.0, 0.8, 0.0, 4.5e-10, 3e-6, 3e-6, 3e-6, 3e-6, 3e-6)
"""Of a context's factors, before anything was measured: as alone, far inputs as far, 1.8 us a new page, 3 us a call of
each phase, a call of a module and a gradient.
"""

TRUST = 0.01

HAPPENS = 0.5
"""[ours] This share of the new pages that are played counts. It was learned on the models of the draw ``studied``
(``evaluation.deepprophet.drawn``), most of which need fewer pages than are played, and some of which need more.
"""


def row(graph: Graph, table: Mapping[str, Measurement], fresh: float, floor: float) -> tuple[float, ...]:
    """What a context's factors are multiplied with, of one graph.

    ``fresh``: bytes on new pages, as counted; ``floor``: seconds of a call that does nothing, of those of ``table``.
    """
    near = far = moved = 0.0
    calls = dict.fromkeys(PHASES, 0.0)
    for operator in graph.operators:
        calls[operator.called_in] += VIEW_WEIGHT if operator.family == "view" else 1.0
        moved += operator.bytes
        if (measurement := table.get(operator.key)) is not None:
            near += above(measurement.near, floor)
            far += (measurement.far - measurement.near) * operator.far_share
    modules = sum(operator.modules for operator in graph.operators)
    gradients = sum(operator.gradients for operator in graph.operators)
    return near, far, moved, fresh, *calls.values(), float(modules), float(gradients)


def context(rows: Sequence[Sequence[float]], whole: Sequence[float], kinds: Sequence[str], neighbours: int) -> Context:
    """The factors for which rows give the seconds of whole iterations of models of so many ``kinds``."""
    fitted = fit(rows, whole, priors=PRIORS, trust=TRUST, groups=kinds)
    near, far, byte, fresh, forward, backward, update, module, gradient = fitted.factors
    return Context(
        neighbours=neighbours, near=near, far=far, byte=byte, fresh=HAPPENS * fresh, calls=(forward, backward, update),
        module=module, gradient=gradient, low=fitted.low, high=fitted.high, samples=len(rows),
    )  # fmt: skip
