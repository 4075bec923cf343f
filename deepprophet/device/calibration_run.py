"""``trainyard predict --calibrate``: measure the device, and keep what was found. Needs PyTorch."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from deepprophet import targets
from deepprophet.costs import store
from deepprophet.costs.calibration import Calibration
from deepprophet.costs.calibration_journal import Journal
from deepprophet.device import busy, device
from deepprophet.device.calibrate import Calibrator
from deepprophet.errors import ProphetError

LOOK_SECONDS = 1.0
"""The load of the device is watched for so many seconds before it is measured."""


def calibrate_device(options: argparse.Namespace) -> int:
    """Measure the device and keep what was found. Raises ProphetError, OSError."""
    where = device.pick(options.device)
    path = options.calibration
    if path is None:
        path = store.path_of(os.environ, device.describe(where), options.threads)
        path.parent.mkdir(parents=True, exist_ok=True)
    targets.check(path, "--calibration")
    began = time.monotonic()

    def say(text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:5.0f} s  {text}\n")

    say(f"calibrating {device.describe(where)}, {options.threads} threads a worker: let nothing else run")
    if (load := busy.describe(busy.other_cores(LOOK_SECONDS), device.cores())) is not None:
        say(f"the device is busy: {load}; what is measured now will be too long")
    about = device.identity(device.provenance(where, options.threads, quick=options.quick))
    journal = Journal(path, about, anew=options.anew)
    if journal.left_out is not None:
        say(f"what an earlier calibration has kept is left out: {journal.left_out}")
    elif journal.kept.operators:
        say(f"going on from an earlier calibration: {journal.kept.summary()}; --anew begins again")
    try:
        calibration = _measured(Calibrator(where, options.threads, say, journal, quick=options.quick))
        store.write(path, calibration)
    except BaseException:
        journal.close()
        say(f"kept so far: {journal.kept.summary()}, in {journal.path}; the same command goes on from there")
        raise
    journal.remove()
    others = busy.describe(calibration.provenance.others_cores, calibration.provenance.cores)
    if options.json:
        summary = {"calibration": str(path), "operators": len(calibration.table), **calibration.provenance.model_dump()}
        sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    else:
        sys.stdout.write(f"{len(calibration.table)} operators measured; kept in {path}\n")
    if others is not None:
        say(f"while this was measured {others}: its times are too long; calibrate again when the device is idle")
    return 0


def _measured(calibrating: Calibrator) -> Calibration:
    """The calibration. Raises ProphetError, also for what cannot be fitted or measured, and OSError."""
    try:
        return calibrating.run()
    except (ValueError, RuntimeError) as error:
        # What a process has told, a fit of it, or PyTorch.
        raise ProphetError(f"the calibration failed: {' '.join(str(error).split())[:300]}") from error
