/** The classes that a job had, over time. */

import { classHistory, classIntervals, meanClass } from "../../data/class_history.js";
import { h } from "../../ui/dom.js";
import { clock, counted, moment, number } from "../../ui/format.js";
import { section } from "../../ui/parts.js";

/** Returns the strip of classes; null where none is known. */
export function classesOverTime(source, job) {
  const log = classHistory(source.state, job.id);
  if (log.length === 0) return null;
  const intervals = classIntervals(log, source.now);
  const isPlanned = log.at(-1)[1] !== null;
  const [from, to] = [intervals[0].from, Math.max(intervals.at(-1).to, intervals[0].from + 1)];
  const when = source.isRecorded ? moment : clock;
  const mean = intervals.length > 1 ? `; class ${number(meanClass(intervals), 2)} in the mean` : "";
  const changes = `${counted(intervals.length - 1, "change")}${mean}`;
  return section(
    "Its class over time",
    h(
      "div",
      {
        class: "strip",
        role: "img",
        "aria-label": `${isPlanned ? "class now" : `not in the plan since ${when(to)}; its last class was`} ${intervals.at(-1).service}; since ${when(from)} ${changes}`,
      },
      intervals.map((one) =>
        h(
          "span",
          {
            class: `strip-part ${one.service === null ? "class-none" : `class-${one.service}`}`,
            title: `${one.service === null ? "not in the plan" : `class ${one.service}`} from ${when(one.from)}`,
            style: { width: `${(((one.to - one.from) / (to - from)) * 100).toFixed(2)}%` },
          },
          (one.to - one.from) / (to - from) > 0.06 ? String(one.service ?? "–") : null,
        ),
      ),
    ),
    h(
      "p",
      { class: "muted ends" },
      h("span", null, when(from)),
      h("span", null, changes),
      h("span", null, !isPlanned ? `${when(to)}, when it left the plan` : source.isRecorded ? when(to) : "now"),
    ),
  );
}
