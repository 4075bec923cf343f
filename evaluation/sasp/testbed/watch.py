"""The process that looks at worker 0's parameters while the job trains, and ends when they have the target.

Needs PyTorch. It has a processor only where nobody else wants one, so looking takes nothing from the job. Where it is
late the job trains on meanwhile, and the target's time is still that of the parameters.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from evaluation.sasp.study.runs import reached
from evaluation.sasp.testbed import looks
from evaluation.sasp.testbed.request import LOOKS, POINTS, Point
from topologies.trainer.results import write_whole

_LOOK_SECONDS = 0.2
_AUTOGROUP = Path("/proc/self/autogroup")


def watch(model: nn.Module, metric: Callable[[nn.Module], float], target: float, folder: Path) -> None:
    """Write the points so far after each look, until the target is there, or nothing more will come.

    ``model`` is like worker 0's, ``folder`` the job's. A metric that is no number ends it, too. Raises OSError.
    """
    points, over = list[Point](), False
    while not over:
        there, over = looks.left(folder / LOOKS)
        for look in there:
            looks.take(look, model)
            with torch.no_grad():
                value = metric(model)
            if not math.isfinite(value):
                return
            points.append((look.seconds, look.iteration, value))
            write_whole(folder / POINTS, json.dumps(points))
            if reached([(iteration, quality) for _, iteration, quality in points], target) is not None:
                return
        if not there and not over:
            time.sleep(_LOOK_SECONDS)


def yield_to_others() -> None:
    """Let this process, which leads its session, have a processor only where nobody else wants one."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    # Linux can share processors out by session first (sched(7), autogroup). This session then gets the least there is.
    with contextlib.suppress(OSError):
        _AUTOGROUP.write_text("19")
