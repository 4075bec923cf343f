/** The jobs of a recorded run as bars over time: their class by colour, and when they reached their targets. */

import { classIntervals } from "../data/class_history.js";
import { classChip, jobLink } from "./parts.js";
import { h } from "./dom.js";
import { compareNames, counted, duration, moment } from "./format.js";

const LEAST_NUMBERED = 0.03;

/** Returns the bars of all jobs that have arrived. `span` is the length of the longest run in seconds. */
export function timeline(source) {
  const { state, now, reached, span } = source;
  const jobs = Object.entries(reached)
    .filter(([, at]) => at.arrival <= now)
    .sort(([a, left], [b, right]) => left.arrival - right.arrival || compareNames(a, b));
  return h(
    "ol",
    { class: "timeline" },
    jobs.map(([id, at]) => row(state, id, at, now, span)),
  );
}

function row(state, id, at, now, span) {
  const left = (time) => `${((100 * time) / span).toFixed(2)}%`;
  const until = Math.min(now, at.end ?? now);
  const parts = classIntervals(state.classes.get(id) ?? [], until)
    .map((one) => ({ ...one, from: Math.max(one.from, at.arrival), to: Math.min(one.to, until) }))
    .filter((one) => one.service !== null && one.to > one.from);
  const passed = (time) => time !== null && time !== undefined && time <= now;
  const isOver = passed(at.end);
  const words = [
    `arrived at ${moment(at.arrival)}`,
    passed(at.t90) ? `90 % after ${duration(at.t90 - at.arrival)}` : null,
    isOver ? `ended after ${duration(at.end - at.arrival)}` : null,
  ]
    .filter(Boolean)
    .join(", ");
  return h(
    "li",
    { key: id },
    h(
      "span",
      { class: "timeline-name" },
      classChip(isOver ? null : (state.jobs.get(id)?.service_class ?? null)),
      jobLink(id),
    ),
    h(
      "span",
      { class: "track", role: "img", "aria-label": `${id}: ${words}` },
      h("span", { class: "run-part", style: { left: left(at.arrival), width: left(until - at.arrival) } }),
      parts.map((one, i) =>
        h(
          "span",
          {
            key: i,
            class: `run-part class-${one.service}`,
            style: { left: left(one.from), width: left(one.to - one.from) },
          },
          (one.to - one.from) / span > LEAST_NUMBERED ? String(one.service) : null,
        ),
      ),
      passed(at.t90) ? h("span", { class: "reached", title: words, style: { left: left(at.t90) } }) : null,
    ),
    h("span", { class: "timeline-time" }, passed(at.t90) ? duration(at.t90 - at.arrival) : ""),
  );
}

/** Returns how many jobs have reached 90 % of convergence by now, and after what time in the mean. */
export function reachedSentence({ reached, now }) {
  const all = Object.values(reached).filter((at) => at.arrival <= now);
  const there = all.filter((at) => at.t90 !== null && at.t90 <= now);
  const mean = there.reduce((sum, at) => sum + at.t90 - at.arrival, 0) / there.length;
  return [
    h("strong", null, `${there.length} of ${counted(all.length, "job")}`),
    " reached 90 % of convergence",
    there.length > 0 ? [", after ", h("strong", null, duration(mean)), " in the mean."] : ".",
  ];
}
