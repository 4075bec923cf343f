/** A job's metric over its iterations, with the next target that is expected. */

import { own } from "../../data/own.js";
import { nextTarget, TARGET_NAMES } from "../../data/select.js";
import { chart } from "../../ui/chart.js";
import { number } from "../../ui/format.js";
import { section } from "../../ui/parts.js";

/** Returns the chart; null before the job has a metric. */
export function metricChart(source, job) {
  const shown = points(source, job);
  if (shown.length === 0) return null;
  const name = job.spec?.metric?.name ?? "metric";
  // The library understands some HTML in texts.
  const shownName = name.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const next = nextTarget(job);
  const hasMetric = next !== null && typeof next.metric === "number";
  return section(
    "Its metric",
    chart({
      key: "metric",
      stamp: `${shown.length} ${shown.at(-1)} ${next?.iteration} ${next?.low} ${next?.high}`,
      label: `${name} by iteration, now ${number(job.last_metric)}${hasMetric ? `; ${number(next.metric)} is expected at iteration ${number(next.iteration)}` : ""}`,
      traces: (colour) => [
        {
          x: shown.map((point) => point[0]),
          y: shown.map((point) => point[1]),
          mode: shown.length === 1 ? "markers" : "lines",
          name: shownName,
          line: { color: colour("accent"), width: 2 },
        },
        ...(hasMetric ? targetTraces(next, colour) : []),
      ],
      layout: { xaxis: { title: { text: "iteration" } }, yaxis: { title: { text: shownName } } },
    }),
  );
}

/** Returns the points of the present run: those of the last hour, and those that came since. */
function points(source, job) {
  const history = own(source.state.history?.jobs, job.id);
  if (history === undefined) return source.state.lines.get(job.id) ?? [];
  const kept = history.iterations_done
    .map((done, i) => [done, history.metric[i]])
    .filter(([done, value]) => done !== null && value !== null);
  const begun = kept.findLastIndex(([done], i) => i > 0 && done < kept[i - 1][0]); // a new run has begun
  const line = source.state.lines.get(job.id) ?? [];
  const known = new Map([...kept.slice(Math.max(begun, 0)), ...line]);
  return [...known].sort(([a], [b]) => a - b);
}

function targetTraces(next, colour) {
  const error =
    typeof next.low === "number" && typeof next.high === "number"
      ? {
          type: "data",
          symmetric: false,
          array: [Math.max(0, next.high - next.iteration)],
          arrayminus: [Math.max(0, next.iteration - next.low)],
          color: colour("warn"),
          thickness: 3,
        }
      : undefined;
  return [
    {
      x: [next.iteration],
      y: [next.metric],
      mode: "markers",
      name: `${TARGET_NAMES[next.name]}, expected (80 % interval)`,
      marker: { color: colour("warn"), size: 9 },
      error_x: error,
    },
  ];
}
