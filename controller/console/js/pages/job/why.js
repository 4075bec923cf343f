/** The answer to the question why a job waits, in sentences. */

import { enforcement, hostsOf } from "../../data/select.js";
import { secondsOfWait } from "../../data/waits.js";
import { h } from "../../ui/dom.js";
import { duration, moment, names, pace } from "../../ui/format.js";
import { empty, section } from "../../ui/parts.js";
import { linked } from "./names.js";
import { useInWords } from "./ports.js";

/** Below this share of another pace a job is slower. */
const SLOWER = 0.95;

/** Returns why a job waits. `explained` of null: the answer has not come yet; `problem` says why it cannot come. */
export function why(state, job, explained, problem) {
  if (problem !== null) return section("Why it waits", empty(problem));
  if (explained === null) return section("Why it waits", empty("Asking the controller."));
  const ports = explained.ports ?? [];
  const worst = ports.find(isShared);
  return section(
    "Why it waits",
    h(
      "p",
      { class: "answer", role: "status", "aria-live": "off" },
      answer(job, ports, worst),
      paceInWords(job, explained.pace),
    ),
    remarks(state, job, worst).map((text) => h("p", { class: "note" }, text)),
    h(
      "p",
      null,
      h("span", { class: "muted" }, `The policy ${explained.policy} says: `),
      explained.reason,
      explained.bottleneck_port
        ? h("span", { class: "muted" }, ` (Its busiest port is ${explained.bottleneck_port}.)`)
        : null,
    ),
    explained.recordedAt === undefined
      ? null
      : h("p", { class: "muted" }, `As it was recorded at ${moment(explained.recordedAt)}.`),
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
function remarks(state, job, worst) {
  const silent = hostsOf(job).filter((name) => state.hosts.get(name)?.alive === false);
  const { isOn, why } = enforcement(state);
  return [
    isOn === false ? `Nothing is enforced now: ${why}. This is the order in which jobs would be served.` : null,
    worst === undefined
      ? null
      : `That is how long the port needs for all that these jobs have left. While they compute, it is free for ${job.id}, which usually waits less. ${useInWords(state, worst.port)}`,
    silent.length > 0
      ? `No agent reports from ${names(silent)}, so what is known of the job there is from before.`
      : null,
  ].filter(Boolean);
}

/** Returns whether other jobs are before a job, or beside it, at a port. */
function isShared(port) {
  return port.before_count + port.alike_count > 0;
}

/** Returns the sentences that answer the question. `worst` is the port where the job waits for longest, if it waits. */
function answer(job, ports, worst) {
  if (ports.length === 0) return `${job.id} has no known traffic yet, so it waits for nobody.`;
  if (worst === undefined) return `${job.id} does not wait: no other job is before it, or beside it, at its ports.`;
  return [...(worst.before_count > 0 ? waiting(job, worst) : sharing(job, worst, ports)), served(ports, worst)];
}

function waiting(job, worst) {
  return [
    `${job.id} waits at ${worst.port} for `,
    ...linked(worst.before, worst.before_count),
    `: ${duration(worst.seconds_before)} at most. `,
    ...(worst.alike_count === 0
      ? []
      : [
          "It shares the port with ",
          ...linked(worst.alike, worst.alike_count),
          `: ${duration(worst.seconds_beside)} more at most. `,
        ]),
  ];
}

/** Says with whom a job shares the port where it waits for longest, and where another is before it. */
function sharing(job, worst, ports) {
  const other = ports.find((port) => port.before_count > 0);
  return [
    `${job.id} shares ${worst.port} with `,
    ...linked(worst.alike, worst.alike_count),
    `: it waits for them ${duration(worst.seconds_beside)} at most. `,
    ...(other === undefined
      ? ["Nobody is before it. "]
      : [
          `At ${other.port} it waits for `,
          ...linked(other.before, other.before_count),
          `: ${duration(other.seconds_before)} at most. `,
        ]),
  ];
}

/** Says when all that a job has left is served, and at which port that is last. */
function served(ports, worst) {
  const until = (port) => secondsOfWait(port) + port.own_seconds_left;
  const last = ports.reduce((found, port) => (until(port) > until(found) ? port : found), worst);
  if (last === worst)
    return `It needs ${duration(worst.own_seconds_left)} there itself, so all is served after ${duration(until(worst))} at most. `;
  return `It is served last at ${last.port}, after ${duration(until(last))} at most. `;
}

/** Says how fast a job runs now, and against what that is slow; nothing where that is not known. */
function paceInWords(job, measured) {
  if (!measured) return null;
  const unit = job.spec?.unit ?? "iteration";
  const { now, alone, best } = measured;
  const text = `It runs at ${pace(now, unit)} now`;
  if (typeof alone === "number")
    return now < SLOWER * alone ? `${text}; alone it would run at about ${pace(alone, unit)}.` : `${text}, as if it were alone.`;
  if (typeof best === "number" && now < SLOWER * best) return `${text}; its fastest 30 s were at ${pace(best, unit)}.`;
  return `${text}.`;
}
