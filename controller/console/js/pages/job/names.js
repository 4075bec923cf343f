/** Names of hosts and of other jobs in a sentence. */

import { h } from "../../ui/dom.js";
import { count, names } from "../../ui/format.js";
import { jobLink } from "../../ui/parts.js";

/** Name at most so many; the others are counted. */
export const MOST_NAMED = 5;

/** Returns names, with those that are too many to show in what can be unfolded. */
export function namesWithMore(all) {
  if (all.length <= MOST_NAMED) return names(all, MOST_NAMED);
  return h("details", null, h("summary", null, names(all)), all.join(", "));
}

/** Returns names with commas between them, and how many there are more. */
export function listed(all) {
  const more = all.length - MOST_NAMED;
  return all.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}

/** Returns links to the jobs of some entries; `all` is how many there are. A tenant does not see the names of others. */
export function linked(entries, all) {
  const shown = entries.slice(0, MOST_NAMED);
  const parts = shown.flatMap((one, i) => [
    i === 0 ? "" : i === shown.length - 1 && all === shown.length ? " and " : ", ",
    named(one.job),
  ]);
  return all > shown.length ? [...parts, ` and ${all - shown.length} more`] : parts;
}

/** Returns a link to a job; of one whose name the caller may not see, what stands for it. */
export function named(job) {
  return job === "another job" ? job : jobLink(job);
}
