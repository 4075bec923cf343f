/** All jobs in a table. */

import { hostsOf, isLive, nextTarget, portsOf, share } from "../data/select.js";
import { forWaits, waits, waitsWhere } from "../data/waits.js";
import { h } from "../ui/dom.js";
import { bytes, clock, moment, number } from "../ui/format.js";
import { bar, classChip, jobLink, jobState } from "../ui/parts.js";
import { sparkline } from "../ui/spark.js";
import { makeTable } from "../ui/table.js";

export const title = "Jobs";

/** What targets other than a declared value are called in a narrow column. */
const SHORT = { t90: "90 %", t95: "95 %" };
const KINDS = { live: "running and waiting", all: "all", ended: "ended and lost" };

export function makePage(redraw) {
  let kind = "live";
  let source = null;
  let found = null;
  const table = makeTable({
    label: "jobs",
    sortBy: "class",
    redraw,
    key: (job) => job.id,
    text: (job) =>
      [job.id, job.state, job.spec?.model, job.spec?.family, job.spec?.user, job.spec?.stage, ...hostsOf(job)]
        .filter(Boolean)
        .join(" "),
    columns: [
      { name: "job", title: "Job", sort: (job) => job.id, cell: (job) => jobLink(job.id) },
      {
        name: "class",
        title: "Class",
        sort: (job) => job.service_class,
        cell: (job) => classChip(job.service_class),
        help: "Class 0 is served first",
      },
      {
        name: "progress",
        title: "Progress",
        sort: share,
        cell: (job) =>
          share(job) === null ? number(job.iterations_done, 4) : bar(share(job), `progress of ${job.id}`),
      },
      { name: "metric", title: "Metric", sort: (job) => job.last_metric, cell: metric },
      {
        name: "waits",
        title: "Waits",
        wide: "phone",
        sort: (job) => found?.get(job.id)?.count ?? null,
        cell: (job) => h("span", { class: "two-lines", title: waitsWhere(found, job.id) }, waitsWhere(found, job.id)),
        help: "At the port where the job waits for longest: who is served first there, and how many more before it",
      },
      { name: "state", title: "State", wide: false, sort: (job) => job.state, cell: jobState },
      {
        name: "model",
        title: "Model",
        wide: false,
        sort: (job) => job.spec?.model ?? null,
        cell: (job) => job.spec?.model ?? "–",
      },
      {
        name: "user",
        title: "User",
        wide: "screen",
        sort: (job) => job.spec?.user ?? null,
        cell: (job) => job.spec?.user ?? "–",
      },
      {
        name: "target",
        title: "Next milestone, at iteration",
        wide: false,
        sort: (job) => nextTarget(job)?.iteration ?? null,
        cell: target,
        help: "The job's target, or else 90 % or 95 % of its convergence: when the policy expects it (80 % interval); – where all are reached, or none is known",
      },
      {
        name: "traffic",
        title: "Sends an iteration",
        help: "The bytes of one iteration",
        wide: "screen",
        sort: sent,
        cell: (job) => (sent(job) === null ? "–" : bytes(sent(job))),
      },
      {
        name: "hosts",
        title: "Hosts",
        wide: "screen",
        sort: (job) => hostsOf(job).length,
        cell: (job) => h("span", { title: hostsOf(job).join(", ") }, String(hostsOf(job).length)),
      },
      {
        name: "arrival",
        title: "Since",
        wide: "screen",
        sort: (job) => job.arrival,
        cell: (job) => (source.isRecorded ? moment(job.arrival > 1e8 ? null : job.arrival) : clock(job.arrival)),
      },
    ],
  });

  function metric(job) {
    return h(
      "span",
      { class: "metric" },
      sparkline(source.state.lines.get(job.id) ?? [], nextTarget(job), job.spec?.metric?.name ?? "metric"),
      h("span", null, number(job.last_metric)),
    );
  }

  const filter = () =>
    h(
      "select",
      { "aria-label": "which jobs", value: kind, on: { change: (event) => ((kind = event.target.value), redraw()) } },
      Object.entries(KINDS).map(([value, text]) => h("option", { value }, text)),
    );

  return {
    wants: forWaits,
    render: (shown) => {
      source = shown;
      found = waits(shown.state);
      const jobs = [...shown.state.jobs.values()].filter((job) => kind === "all" || isLive(job) === (kind === "live"));
      return table(jobs, { filters: [filter()] });
    },
  };
}

function target(job) {
  const next = nextTarget(job);
  if (next === null) return "–";
  const interval =
    typeof next.low === "number" && typeof next.high === "number"
      ? ` (${number(next.low)} to ${number(next.high)})`
      : "";
  return `${SHORT[next.name] ?? number(next.metric)} at ${number(next.iteration)}${interval}`;
}

/** Returns the bytes that one iteration sends, or null. */
function sent(job) {
  const ports = [...portsOf(job)].filter(([port]) => port.endsWith(" egress"));
  return ports.length === 0 ? null : ports.reduce((sum, [, value]) => sum + value, 0);
}
