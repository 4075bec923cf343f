/** How a job fares now: its state, class, progress, metric and hosts. */

import { classHistory, steadiness } from "../../data/class_history.js";
import { own } from "../../data/own.js";
import { foundBy, hostsOf, isLive, share } from "../../data/select.js";
import { h } from "../../ui/dom.js";
import { clock, count, counted, duration, moment, number } from "../../ui/format.js";
import { badge, bar, classChip, fact, facts, jobState, section } from "../../ui/parts.js";
import { listed, namesWithMore } from "./names.js";

/** A class that changed so often within the last minute is told by its mean. */
const OFTEN = 3;

/** Returns what a reader sees first. */
export function header(source, job, explained) {
  const done = share(job);
  const total = job.iterations_total ?? job.spec?.iterations;
  return section(
    "State",
    facts(
      fact("State", stateOf(job, explained), sinceWhen(source, job)),
      fact("Class", classChip(job.service_class), classInWords(source, job)),
      fact(
        "Progress",
        done === null ? number(job.iterations_done, 4) : bar(done, "progress"),
        total
          ? `${job.spec?.unit ?? "iteration"} ${count(Math.floor(job.iterations_done))} of ${count(total)}`
          : "the length of the run is not declared",
      ),
      fact(
        job.spec?.metric?.name ?? "Metric",
        number(job.last_metric),
        `latest report; ${job.spec?.target ? `target ${number(job.spec.target)}` : "no target is declared"}`,
      ),
      fact("Hosts", String(hostsOf(job).length || "–"), namesWithMore(hostsOf(job))),
    ),
    finding(job, explained),
  );
}

/** The state of a job, and how many are before it at one of its ports or more. */
function stateOf(job, explained) {
  // A recording of an earlier version says it only port by port.
  const before = isLive(job) ? (explained?.before_count ?? explained?.ports?.[0]?.before_count ?? 0) : 0;
  return before === 0 || job.diverged ? jobState(job) : badge(`${job.state}, behind ${counted(before, "job")}`);
}

/** When a job began, and when it ended; where its end is not told, when it was heard of last. Null: nothing is known. */
function sinceWhen(source, job) {
  if (source.isRecorded) {
    const { arrival = null, end = null } = own(source.reached, job.id) ?? {};
    return arrival === null ? null : life(arrival, end !== null && end <= source.now ? end : null, moment);
  }
  if (isLive(job) || typeof job.ended_at === "number") return life(job.arrival, job.ended_at ?? null, clock);
  const last = job.last_report ? `; last report at ${clock(job.last_report)}` : "";
  return `submitted at ${clock(job.arrival)}${last}`;
}

function life(arrival, end, when) {
  if (end === null) return `since ${when(arrival)}`;
  return `submitted at ${when(arrival)}; ended at ${when(end)}, after ${duration(end - arrival)}`;
}

/** Says which classes are served before that of a job, and how steady its class is. */
function classInWords(source, job) {
  if (job.service_class === null) return "not in the plan";
  const place = job.service_class === 0 ? "no class goes before it" : "lower classes go before it";
  return [place, steadinessInWords(source, job)].filter(Boolean).join("; ");
}

/** Says since when a class has not changed, or, of one that changes often, how often and what it is in the mean. */
function steadinessInWords(source, job) {
  const found = steadiness(classHistory(source.state, job.id), source.now);
  if (found === null) return null;
  if (found.changes >= OFTEN)
    return `${count(found.changes)} changes in the last minute, class ${number(found.mean, 2)} in the mean`;
  return `unchanged since ${(source.isRecorded ? moment : clock)(found.since)}`;
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
