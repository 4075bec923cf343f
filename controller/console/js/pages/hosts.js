/** The hosts: their agents, their links, and the jobs that run there. */

import { directions, hostsOf, liveJobs } from "../data/select.js";
import { h } from "../ui/dom.js";
import { count, duration, percent, rate } from "../ui/format.js";
import { badge, jobLink, loadBar, section } from "../ui/parts.js";
import { makeTable } from "../ui/table.js";
import { addresses, makeEnrolments } from "./enrolments.js";

const MOST_JOBS = 4;
const MOST_PROBLEMS = 20;
const LEAST_OFFSET_SECONDS = 0.1;
const LARGE_OFFSET_SECONDS = 2;

export const title = "Hosts";

export function makePage(redraw) {
  const enrolments = makeEnrolments(redraw);
  const table = makeTable({
    label: "hosts",
    sortBy: "host",
    redraw,
    key: (row) => row.name,
    text: (row) => [row.name, row.address, row.alive ? "reports" : "silent", ...row.jobs].filter(Boolean).join(" "),
    columns: [
      { name: "host", title: "Host", sort: (row) => row.name, cell: (row) => row.name },
      {
        name: "address",
        title: "Address",
        wide: false,
        sort: (row) => row.address,
        cell: (row) => (row.told ? addresses(row.told) : (row.address ?? "–")),
      },
      {
        name: "agent",
        title: "Agent",
        sort: (row) => Number(row.alive),
        cell: (row) => (row.alive ? badge("reports", "good") : badge("silent", "bad")),
      },
      {
        name: "marks",
        title: "Marks",
        help: "Whether its agent marks acknowledgements",
        wide: false,
        sort: (row) => Number(row.marks_acknowledgements ?? false),
        cell: (row) => (row.marks_acknowledgements ? "yes" : "no"),
      },
      {
        name: "clock",
        title: "Clock",
        wide: false,
        sort: (row) => Math.abs(row.clock_offset_seconds ?? NaN),
        cell: clock,
        help: "How far the host's clock is from the controller's",
      },
      { name: "jobs", title: "Jobs", sort: (row) => row.jobs.length, cell: jobs },
      {
        name: "rate",
        title: "Link",
        wide: false,
        sort: (row) => row.link?.bps ?? null,
        cell: (row) => rate(row.link?.bps),
      },
      {
        name: "use",
        title: "Received now",
        sort: (row) => row.link?.use ?? null,
        cell: (row) =>
          loadBar(
            row.link?.load ?? null,
            row.link?.bps,
            row.name,
            row.link?.total == null ? "" : `${rate(row.link.total)}, ${percent(row.link.use)}`,
          ),
      },
    ],
  });
  return {
    wants: () => ["network", "hosts"],
    render: (source) => {
      const { state } = source;
      const running = new Map();
      for (const job of liveJobs(state))
        for (const host of hostsOf(job)) running.set(host, [...(running.get(host) ?? []), job.id]);
      const links = new Map();
      for (const one of directions(state.network).filter(({ to }) => to.port === null))
        links.set(one.to.node, together(links.get(one.to.node), one));
      const told = new Map((state.enrolments ?? []).map((host) => [host.name, host]));
      return [
        enrolments(source),
        lookAt(state),
        table(
          [...state.hosts.values()].map((host) => ({
            ...host,
            jobs: running.get(host.name) ?? [],
            link: links.get(host.name),
            told: told.get(host.name),
          })),
        ),
      ];
    },
  };
}

/** What is wrong at hosts that take part, such as bytes that are of no connection. */
function lookAt(state) {
  const all = (state.enrolments ?? [])
    .filter((host) => host.state === "listed" || host.state === "approved")
    .flatMap((host) => host.problems.map((problem) => ({ host: host.name, problem })));
  if (all.length === 0) return null;
  return section(
    "Look at",
    h(
      "ul",
      { class: "problems" },
      all.slice(0, MOST_PROBLEMS).map(({ host, problem }) => h("li", null, h("strong", null, host), `: ${problem}`)),
    ),
    all.length > MOST_PROBLEMS ? h("p", { class: "muted" }, `and ${count(all.length - MOST_PROBLEMS)} more`) : null,
  );
}

/** Returns two links of a host as one; null where one of them is not counted. `first` may be undefined. */
function together(first, second) {
  if (first === undefined) return second;
  const bps = first.bps === null || second.bps === null ? null : first.bps + second.bps;
  const total = first.total === null || second.total === null ? null : first.total + second.total;
  const classes = total === null ? [] : Object.keys({ ...first.load, ...second.load });
  const load = total === null ? null : Object.fromEntries(classes.map((k) => [k, sum(first.load[k], second.load[k])]));
  return { ...first, bps, total, load, use: total === null || !bps ? null : total / bps };
}

function sum(a = 0, b = 0) {
  return a + b;
}

function clock(row) {
  const offset = row.clock_offset_seconds;
  if (offset === null || offset === undefined) return "–";
  if (Math.abs(offset) < LEAST_OFFSET_SECONDS) return "right";
  const text = `${duration(Math.abs(offset))} ${offset > 0 ? "behind" : "ahead"}`;
  return Math.abs(offset) < LARGE_OFFSET_SECONDS ? text : badge(text, "warn");
}

function jobs(row) {
  const shown = row.jobs.slice(0, MOST_JOBS).flatMap((id, i) => (i === 0 ? [jobLink(id)] : [", ", jobLink(id)]));
  return row.jobs.length > MOST_JOBS
    ? [...shown, ` and ${row.jobs.length - MOST_JOBS} more`]
    : shown.length > 0
      ? shown
      : "–";
}
