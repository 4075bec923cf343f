/** One job: why it waits, what is known of it, and what would help. */

import { classHistory, classIntervals, enforcement, foundBy, hostsOf, nextTarget, share } from "../data/select.js";
import { chart } from "../ui/chart.js";
import { h } from "../ui/dom.js";
import { clock, count, counted, duration, moment, names, number } from "../ui/format.js";
import { badge, bar, classChip, empty, fact, facts, jobLink, jobState, section } from "../ui/parts.js";
import { makeWhatIf } from "./what_if.js";

const REFRESH_SECONDS = 5;
const MOST_NAMED = 5;
const MOST_PORTS = 4;

export function makePage(redraw, [id]) {
  let explained = null;
  let problem = null;
  let asked = null;
  const whatIf = makeWhatIf(id, redraw);

  /** Asks again when the plan has changed, or after some seconds. */
  function ask(source) {
    const step = source.isRecorded ? Math.floor(source.now * 2) : Math.floor(source.now / REFRESH_SECONDS);
    const stamp = `${source.state.plan?.epoch} ${step}`;
    if (stamp === asked) return;
    asked = stamp;
    source.explain(id).then(
      (document) => ((explained = document), (problem = null), redraw()),
      (error) => ((explained = null), (problem = error.message), redraw()),
    );
  }

  return {
    title: `Job ${id}`,
    wants: ({ jobs }) => (jobs.has(id) ? [`job:${id}`, `history:jobs=${encodeURIComponent(id)}&step=15&ports=`] : []),
    render: (source) => {
      const job = source.state.jobs.get(id);
      if (job === undefined)
        return empty(source.connection.isOpen ? `There is no job ${id} now.` : "Waiting for the controller.");
      const isLive = job.state === "running" || job.state === "waiting";
      if (isLive) ask(source);
      return [
        header(source, job, explained),
        isLive
          ? why(source.state, job, explained, problem)
          : section("Why it waits", empty(`The job is ${job.state}: it is not in the plan.`)),
        isLive && source.may("GET /v1/plan") ? whatIf.render(source, job, explained) : null,
        known(job, explained),
        metricChart(source, job),
        classes(source, job),
      ];
    },
  };
}

function header(source, job, explained) {
  const done = share(job);
  const total = job.iterations_total ?? job.spec?.iterations;
  return section(
    "State",
    facts(
      fact("State", jobState(job), source.isRecorded ? null : `since ${clock(job.arrival)}`),
      fact(
        "Class",
        classChip(job.service_class),
        job.service_class === null
          ? "not in the plan"
          : job.service_class === 0
            ? "goes first"
            : `goes after ${counted(job.service_class, "class", "classes")}`,
      ),
      fact(
        "Progress",
        done === null ? number(job.iterations_done, 4) : bar(done, "progress"),
        total
          ? `iteration ${count(Math.floor(job.iterations_done))} of ${count(total)}`
          : "the length of the run is not declared",
      ),
      fact(
        job.spec?.metric?.name ?? "Metric",
        number(job.last_metric),
        job.spec?.target ? `target ${number(job.spec.target)}` : "no target is declared",
      ),
      fact("Hosts", String(hostsOf(job).length || "–"), names(hostsOf(job))),
    ),
    finding(job, explained),
  );
}

/** Says how agents have found the job, and where none has; nothing of a job that was registered whole. */
function finding(job, explained) {
  const found = foundBy(job);
  if (found === null) return null;
  const others = found.hosts.filter((host) => host !== found.first);
  const shown = [...(found.first === null ? [] : [`${found.first} (rank 0)`]), ...others];
  const missing = explained?.found?.missing ?? [];
  return h(
    "p",
    { class: "muted" },
    `Found by ${found.launcher} on ${listed(shown)}.`,
    missing.length > 0 ? ` ${found.launcher} also names ${listed(missing)}: no agent has told of the job there.` : null,
  );
}

function listed(all) {
  const more = all.length - MOST_NAMED;
  return all.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}

function why(state, job, explained, problem) {
  if (problem !== null) return section("Why it waits", empty(problem));
  if (explained === null) return section("Why it waits", empty("Asking the controller."));
  const ports = explained.ports ?? [];
  const waits = ports.filter((port) => port.before_count > 0);
  return section(
    "Why it waits",
    h("p", { class: "answer", role: "status", "aria-live": "off" }, answer(job, explained, waits, ports)),
    remarks(state, job).map((text) => h("p", { class: "note" }, text)),
    h("p", null, h("span", { class: "muted" }, `${explained.policy} says: `), explained.reason),
    explained.recordedAt === undefined
      ? null
      : h("p", { class: "muted" }, `As it was recorded at ${moment(explained.recordedAt)}.`),
    waits.length > 0 ? waitTable(waits.slice(0, MOST_PORTS)) : null,
    waits.length > MOST_PORTS
      ? h(
          "details",
          null,
          h("summary", null, counted(waits.length - MOST_PORTS, "more port")),
          waitTable(waits.slice(MOST_PORTS)),
        )
      : null,
    explained.problems.length > 0
      ? h(
          "ul",
          { class: "problems" },
          explained.problems.map((text) => h("li", null, text)),
        )
      : null,
  );
}

/** Returns what else a reader of the answer must know. */
function remarks(state, job) {
  const silent = hostsOf(job).filter((name) => state.hosts.get(name)?.alive === false);
  const { isOn, why } = enforcement(state);
  return [
    isOn === false
      ? `Nothing is enforced now: ${why}. This is the order in which jobs would be served.`
      : "A port serves the classes in their order. A job that waits goes on with what the classes before it leave.",
    silent.length > 0
      ? `No agent reports from ${names(silent)}, so what is known of the job there is from before.`
      : null,
  ].filter(Boolean);
}

/** Returns one sentence that answers the question. */
function answer(job, explained, waits, ports) {
  if (ports.length === 0) return `${job.id} has no known traffic yet, so it waits for nobody.`;
  if (waits.length === 0) {
    const shared = ports.filter((port) => port.alike_count > 0);
    if (shared.length === 0) return `${job.id} does not wait: no other job is before it, or beside it, at its ports.`;
    return [
      `${job.id} waits for nobody. It shares ${shared[0].port} with `,
      ...linked(shared[0].alike, shared[0].alike_count),
      ".",
    ];
  }
  const worst = waits[0];
  return [
    `${job.id} waits at ${worst.port} for `,
    ...linked(worst.before, worst.before_count),
    `, which ${worst.before_count === 1 ? "needs" : "need"} ${duration(worst.seconds_before)} of this port for all that is left. ${job.id} itself needs ${duration(worst.own_seconds_left)} there.`,
  ];
}

function linked(entries, all) {
  const shown = entries.slice(0, MOST_NAMED);
  const parts = shown.flatMap((one, i) => [
    i === 0 ? "" : i === shown.length - 1 && all === shown.length ? " and " : ", ",
    one.job === "another job" ? one.job : jobLink(one.job),
  ]);
  return all > shown.length ? [...parts, ` and ${all - shown.length} more`] : parts;
}

function waitTable(ports) {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "plain waits", "aria-label": "who is before it, by port" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Port", "Before it", "For", "Beside it", "Its own need"].map((text) => h("th", { scope: "col" }, text)),
        ),
      ),
      h(
        "tbody",
        null,
        ports.map((port) =>
          h(
            "tr",
            { key: port.port },
            h("th", { scope: "row" }, port.port),
            h(
              "td",
              null,
              h(
                "ul",
                { class: "inline" },
                port.before
                  .slice(0, MOST_NAMED)
                  .map((one) =>
                    h(
                      "li",
                      null,
                      classChip(one.service_class),
                      " ",
                      one.job === "another job" ? one.job : jobLink(one.job),
                      h("span", { class: "muted" }, ` ${duration(one.seconds_left)}`),
                    ),
                  ),
              ),
              port.before_count > MOST_NAMED ? `and ${port.before_count - MOST_NAMED} more` : null,
            ),
            h("td", null, duration(port.seconds_before)),
            h("td", null, port.alike_count === 0 ? "nobody" : linked(port.alike, port.alike_count)),
            h(
              "td",
              null,
              `${duration(port.own_seconds_left)}; ${duration(port.own_seconds_per_iteration)} an iteration`,
            ),
          ),
        ),
      ),
    ),
  );
}

function known(job, explained) {
  const targets = Object.entries(job.targets ?? {}).filter(([, one]) => typeof one.iteration === "number");
  const NAMES = { t90: "90 % of convergence", t95: "95 % of convergence", target: "its declared target" };
  return section(
    "What is known of it",
    facts(
      fact("Model", job.spec?.model ?? "–"),
      fact("Family", explained?.family ?? job.spec?.family ?? "–", explained?.earlier_runs ?? null),
      fact("Weight", number(job.spec?.weight ?? null)),
      explained && fact("Iterations left", number(explained.iterations_left, 4), "as the policy expects"),
      ...targets.map(([name, one]) =>
        fact(
          `Reaches ${NAMES[name] ?? name}`,
          `at ${number(one.iteration)}`,
          [
            typeof one.low === "number" && typeof one.high === "number"
              ? `between ${number(one.low)} and ${number(one.high)} with 80 %`
              : null,
            typeof one.metric === "number" ? `metric ${number(one.metric)}` : null,
          ]
            .filter(Boolean)
            .join("; ") || null,
        ),
      ),
    ),
    job.diverged ? h("p", null, badge("This run has diverged: it is not favoured any more.", "bad")) : null,
  );
}

function points(source, job) {
  const history = source.state.history?.jobs?.[job.id];
  if (history === undefined) return source.state.lines.get(job.id) ?? [];
  const kept = history.iterations_done
    .map((done, i) => [done, history.metric[i]])
    .filter(([done, value]) => done !== null && value !== null);
  const line = source.state.lines.get(job.id) ?? [];
  const last = kept.at(-1)?.[0] ?? -Infinity;
  return [...kept, ...line.filter(([done]) => done > last)];
}

function metricChart(source, job) {
  const shown = points(source, job);
  if (shown.length < 2) return null;
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
          mode: "lines",
          name: shownName,
          line: { color: colour("accent"), width: 2 },
        },
        ...(hasMetric ? targetTraces(next, colour) : []),
      ],
      layout: { xaxis: { title: { text: "iteration" } }, yaxis: { title: { text: shownName } } },
    }),
  );
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
      name: `${next.name === "target" ? "target" : next.name}, expected (80 % interval)`,
      marker: { color: colour("warn"), size: 9 },
      error_x: error,
    },
  ];
}

function classes(source, job) {
  const log = classHistory(source.state, job.id);
  if (log.length === 0) return null;
  const intervals = classIntervals(log, source.now);
  const [from, to] = [intervals[0].from, Math.max(source.now, intervals[0].from + 1)];
  const when = source.isRecorded ? moment : clock;
  const changes = intervals.length - 1;
  return section(
    "Its class over time",
    h(
      "div",
      {
        class: "strip",
        role: "img",
        "aria-label": `class now ${intervals.at(-1).service}, ${counted(changes, "change")} since ${when(from)}`,
      },
      intervals.map((one) =>
        h(
          "span",
          {
            class: `strip-part class-${one.service}`,
            title: `class ${one.service} from ${when(one.from)}`,
            style: { width: `${(((one.to - one.from) / (to - from)) * 100).toFixed(2)}%` },
          },
          (one.to - one.from) / (to - from) > 0.06 ? String(one.service) : null,
        ),
      ),
    ),
    h(
      "p",
      { class: "muted ends" },
      h("span", null, when(from)),
      h("span", null, counted(changes, "change")),
      h("span", null, source.isRecorded ? when(to) : "now"),
    ),
  );
}
