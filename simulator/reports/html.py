"""A report that is one file: tables and drawings, no script, nothing fetched from anywhere, light and dark."""

from __future__ import annotations

import html
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from simulator.reports.measures import Measures
from simulator.reports.plots import drawings
from simulator.reports.results import Results
from simulator.reports.summary import TITLES, summarise, versus
from simulator.reports.table import half_width, number, percent

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #ffffff; --line: #d0d0d0; --soft: #f4f4f2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181a; --line: #3a3d40; --soft: #202326; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 62rem; padding: 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.wide { overflow-x: auto; } code { background: var(--soft); padding: .1rem .3rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .8rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } dt { font-weight: 600; } dd { margin: 0 0 .5rem 0; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; color: var(--ink); }
"""
_WORDS = {
    "CCT": "coflow completion time: of a trace's coflow from its arrival; of a training job, an iteration's transfers",
    "JCT, SCT": "completion time of a job, and of a stage: from its first job's arrival to its last job's end",
    "t90, t95": "seconds from a job's arrival until its metric has closed 90 % (95 %) of the gap to its last value; "
    "a job that never does is censored: counted, and left out of the mean",
    "slowdown": "a job's time over its time alone on the network",
    "link use": "share of its rate that a port with traffic carried, from the first arrival to the last completion",
    "±": "half of the 95 % interval of the mean, over seeds (Student's t)",
    "saved": "1 - mean / the baseline's mean, in pairs of the same seed, with half of its 95 % interval over seeds; "
    "of a trace, with both ends of the interval over its coflows (paired bootstrap), which is skewed",
}


def page(results: Results) -> str:
    """The whole page."""
    body = [f"<h1>{_text(results.title)}</h1>", _facts(results)]
    for load, runs in results.runs.items():
        if load is not None:
            body.append(f"<h2>Load {load!r}</h2>")
        body += [_measure(name, runs, results) for name in TITLES]
        body.append(_running(runs))
    body.append("<h2>Pictures</h2>")
    body += [
        f'<figure class="wide" role="img" aria-label="{_text(name)}">{svg}</figure>'
        for name, svg in drawings(results).items()
    ]
    words = "".join(f"<dt>{_text(word)}</dt><dd>{_text(meaning)}</dd>" for word, meaning in _WORDS.items())
    body.append(f"<h2>Words</h2><dl>{words}</dl>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(results.title)}: trainyard sim</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body></html>\n"
    )


def _facts(results: Results) -> str:
    try:
        own = version("trainyard")
    except PackageNotFoundError:
        own = "unknown"
    facts = {"Command": f"<code>{_text(results.command)}</code>"}
    if results.seeded:
        facts["Seeds"] = ", ".join(str(seed) for seed in results.seeds)
    facts["Baseline"] = _text(results.baseline)
    facts["Made by"] = f"Trainyard {_text(own)}, Python {platform.python_version()}, NumPy {_text(np.__version__)}"
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items()) + "</dl>"


def _measure(name: str, runs: Mapping[str, Sequence[Measures]], results: Results) -> str:
    rows = []
    for policy, policy_runs in runs.items():
        summary = summarise(policy_runs).get(name)
        if summary is None:
            continue
        comparison = versus(runs[results.baseline], policy_runs).get(name)
        rows.append(
            [
                policy,
                *map(number, (summary.mean, half_width(summary.interval), summary.p50, summary.p95, summary.p99)),
                str(summary.count),
                str(summary.censored),
                "-"
                if comparison is None or policy == results.baseline
                else percent(comparison.reduction, comparison.interval),
            ]
        )
    if not rows:
        return ""
    titles = ["policy", "mean", "±", "p50", "p95", "p99", "count", "censored", f"saved to {results.baseline}"]
    return f"<h3>{_text(TITLES[name])}</h3>{_table(titles, rows)}"


def _running(runs: Mapping[str, Sequence[Measures]]) -> str:
    rows = [
        [
            policy,
            number(float(np.mean([run.makespan_seconds for run in policy_runs]))),
            str(sum(run.plans for run in policy_runs)),
            f"{sum(run.cpu_seconds for run in policy_runs):.2f}",
        ]
        for policy, policy_runs in runs.items()
    ]
    return f"<h3>The runs</h3>{_table(['policy', 'makespan (s)', 'plans', 'CPU (s)'], rows)}"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_text(title)}</th>" for title in titles)
    lines = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _text(text: str) -> str:
    return html.escape(text)
