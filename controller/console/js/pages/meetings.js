/** The ports where jobs meet, and who meets there. */

import { contended, directions, liveJobs } from "../data/select.js";
import { waits } from "../data/waits.js";
import { h } from "../ui/dom.js";
import { compareNames, count, counted, names, percent } from "../ui/format.js";
import { jobLink } from "../ui/parts.js";

const MOST_NAMED = 3;
const MOST_PORTS = 12;
const MOST_JOBS = 20;

/** Returns a sentence that says where jobs meet, which unfolds to all these ports. Null: it is not known. */
export function meetings(state) {
  const shared = contended(state);
  if (shared === null) return null;
  if (shared.size === 0)
    return h("p", { class: "note" }, "Ordering cannot help here: no two jobs send or receive at the same port.");
  const [port, jobs, verb] = crowded(state) ?? [...largest(shared), "meet"];
  const text = `Jobs meet at ${counted(shared.size, "port")}. Most ${verb} at ${port}: ${names(jobs, MOST_NAMED)}`;
  return h("details", { class: "note" }, h("summary", null, text), portList(state, shared, port));
}

/** Returns the port where most jobs wait for longest, with these jobs; null where none waits, or it is not known. */
function crowded(state) {
  const found = waits(state);
  const waiting = new Map();
  for (const { id } of found === null ? [] : liveJobs(state)) {
    const wait = found.get(id);
    if (!wait || wait.count === 0) continue;
    if (waiting.has(wait.port)) waiting.get(wait.port).push(id);
    else waiting.set(wait.port, [id]);
  }
  return waiting.size === 0 ? null : [...largest(waiting), "wait"];
}

function largest(jobsByPort) {
  return [...jobsByPort].sort((a, b) => b[1].length - a[1].length)[0];
}

/** Returns the ports with their jobs, `first` and then those with most jobs first. */
function portList(state, shared, first) {
  const all = [...shared].sort(
    ([a, left], [b, right]) =>
      Number(b === first) - Number(a === first) || right.length - left.length || compareNames(a, b),
  );
  const uses = new Map(directions(state.network).map((one) => [one.port, one.use]));
  return [
    h(
      "ul",
      { "aria-label": "ports where jobs meet" },
      all.slice(0, MOST_PORTS).map(([port, jobs]) => h("li", { key: port }, whoMeets(port, jobs, uses.get(port)))),
    ),
    all.length > MOST_PORTS ? h("p", { class: "muted" }, `and ${counted(all.length - MOST_PORTS, "more port")}`) : null,
  ];
}

function whoMeets(port, jobs, use) {
  const full = typeof use === "number" ? ` (${percent(use)} full)` : "";
  const links = jobs.slice(0, MOST_JOBS).flatMap((job, i) => [i > 0 ? ", " : "", jobLink(job)]);
  const more = jobs.length - MOST_JOBS;
  return [h("strong", null, port), `${full}: `, links, more > 0 ? ` and ${count(more)} more` : null];
}
