"""``scripts/bench [NAME ...]``: speed and memory of the hot paths, beside a peer or a floor in the same run."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from evaluation import summary
from evaluation.bench.agreement import demo, every_policy
from evaluation.bench.api import console, events, large_jobs
from evaluation.bench.dataplane import control, openflow_fuzz, tls_renewal
from evaluation.bench.figures import Bench
from evaluation.bench.hosts import agent, callbacks, found_jobs
from evaluation.bench.lab import enforcement
from evaluation.bench.planning import curve_fits, ordering, simulation
from evaluation.bench.reloads import bench as reloads
from simulator.errors import InputError
from simulator.reports.terminal import output
from topologies import checkout
from topologies.signals import exit_status

BENCHES: Mapping[str, Callable[[Path, Path | None], Bench]] = {
    "curves": curve_fits.run,
    "ordering": ordering.run,
    "simulator": simulation.run,
    "control": control.run,
    "agreement": every_policy.run,
    "demo-agreement": demo.run,
    "callbacks": callbacks.run,
    "agent": agent.run,
    "found-jobs": found_jobs.run,
    "openflow-fuzz": openflow_fuzz.run,
    "large-jobs": large_jobs.run,
    "tls-renewal": tls_renewal.run,
    "events": events.run,
    "console": console.run,
    "reload": reloads.run,
    "enforcement": enforcement.run,
}


def main(
    arguments: Sequence[str] | None = None, benches: Mapping[str, Callable[[Path, Path | None], Bench]] = BENCHES
) -> int:
    """Measure. Exit status: 0 every figure holds its limit, 1 one does not, or a bench failed; what others found is
    written all the same.
    """
    parser = argparse.ArgumentParser(prog="scripts/bench", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(benches)} (all)")
    parser.add_argument("--results", type=Path, default=checkout.ROOT / "results" / "bench", metavar="FOLDER")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="real traces and curves, where they are at hand")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(benches)):
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(benches)}")
    folder = options.results.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    done: dict[str, Bench] = {}
    failed = False
    for name in options.names or benches:
        try:
            done[name] = benches[name](folder, options.data.resolve() if options.data is not None else None)
        except (RuntimeError, InputError) as error:
            sys.stderr.write(f"bench {name}: {error}\n")
            failed = True
        except Exception:  # a bench's own fault must not cost what the others have measured, for minutes
            sys.stderr.write(f"bench {name}: {traceback.format_exc()}")
            failed = True
        _write(folder, " ".join(["scripts/bench", *(arguments or sys.argv[1:])]), done)
    _show(done)
    return 1 if failed or not all(figure.holds for bench in done.values() for figure in bench.figures) else 0


def _write(folder: Path, command: str, done: Mapping[str, Bench]) -> None:
    """The summary of what is done so far: whatever ends the rest, that is kept."""
    figures = [figure.document() for bench in done.values() for figure in bench.figures]
    datapath = next((bench.datapath for bench in done.values() if bench.datapath != "none"), "none")
    document = summary.head(command, datapath, [], figures)
    summary.write(folder / "summary.json", document | {"benches": {n: asdict(b) for n, b in done.items()}})


def _show(done: Mapping[str, Bench]) -> None:
    table = Table(title="bench")
    for name in ("bench", "figure", "value", "limit", "beside it"):
        table.add_column(name, justify="right" if name in {"value", "limit"} else "left")
    for name, bench in done.items():
        for figure in bench.figures:
            table.add_row(
                name,
                figure.claim,
                f"{figure.value:.3g} {figure.unit}" + ("" if figure.holds else " (over)"),
                "" if figure.limit is None else f"< {figure.limit:g}",
                f"{figure.baseline:.3g} {figure.unit}: {figure.baseline_name}",
            )
    output().print(table)


if __name__ == "__main__":
    sys.exit(exit_status(main))
