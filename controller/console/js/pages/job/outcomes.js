/** What each change that was tried would do for a job, in words. `controller/cli/explain/tries.py` says the same. */

import { differ } from "../../data/moves.js";
import { secondsOfWait } from "../../data/waits.js";
import { h } from "../../ui/dom.js";
import { counted, duration, number } from "../../ui/format.js";
import { jobLink } from "../../ui/parts.js";

const MOST_NAMED = 3;
const LASTS =
  "Times are the most that the network can need; computing comes in addition. A change lasts until you change it again. What it brings changes as jobs come, go and progress.";

/** Returns what each of the tried changes would do, after what is now, the first of `all`. */
export function outcomes(id, all, source) {
  const [now, ...tried] = all;
  return [
    h(
      "ul",
      null,
      h("li", { key: "now" }, `As it is (weight ${number(now.weight)}): it waits `, waitInWords(now), served(now)),
      tried.map((one, i) =>
        h("li", { key: i }, `With ${changeOf(now, one)}: `, verdict(now, one), served(one, now), " ", whoWaitsLonger(one)),
      ),
    ),
    tried.length === 1 ? h("p", { class: "muted" }, `${tried[0].policy} would say: ${tried[0].reason}`) : null,
    h("p", { class: "muted" }, LASTS),
    howTo(id, now, tried.filter((one) => isOther(now, one)), source),
  ];
}

/** Says what to do to have what would make a difference: in which file, or by which command. */
function howTo(id, now, tried, source) {
  const changed = tried.find((one) => declared(now, one).length > 0);
  const isOfAll = tried.some((one) => one.policy !== now.policy);
  const where = source.may("PATCH /v1/settings") ? "on the page Settings" : "ask an operator";
  return [
    changed === undefined ? null : declaring(id, declared(now, changed)),
    isOfAll
      ? h(
          "p",
          { class: "muted" },
          `Another policy is set for all jobs at once (${where}): it changes the place of every job.`,
        )
      : null,
  ];
}

/** Returns what the job would have to declare, with its values. */
function declared(now, one) {
  return ["weight", "target"].filter((name) => one[name] !== now[name]).map((name) => [name, one[name]]);
}

function declaring(id, changes) {
  const url = `${location.origin}/v1/jobs/${encodeURIComponent(id)}`;
  const change = JSON.stringify(Object.fromEntries(changes));
  return h(
    "details",
    { class: "muted" },
    h("summary", null, `To have ${changes.map(([name, value]) => `${name} ${number(value)}`).join(" and ")}`),
    h(
      "p",
      null,
      "Write ",
      h("code", null, changes.map(([name, value]) => `${name}: ${value}`).join(", ")),
      " below ",
      h("code", null, "spec"),
      " in the job's file, in /etc/trainyard/jobs.d of one of its hosts. A job without a file takes it by this command, where tokens are needed with ",
      h("code", null, '-H "Authorization: Bearer TOKEN"'),
      " in both calls:",
    ),
    h("pre", null, `curl -s ${url} | jq '.spec + ${change}' | curl -X PUT --json @- ${url}`),
    h("p", null, "The job goes on meanwhile, and keeps its progress."),
  );
}

/** Returns what differs from the job as it is. */
function changeOf(now, one) {
  const changes = [
    one.weight !== now.weight ? `weight ${number(one.weight)}` : null,
    one.target !== now.target ? `target ${number(one.target)}` : null,
    one.policy !== now.policy ? `policy ${one.policy}` : null,
  ].filter(Boolean);
  return changes.length > 0 ? changes.join(", ") : "no change";
}

/** Returns how long a job waits at most, for those before it and for those that share with it. */
function secondsOf({ wait }) {
  return wait === null ? 0 : secondsOfWait(wait);
}

/** Returns whether a job waits for another time than now. */
function isOther(now, one) {
  return differ(secondsOf(now), secondsOf(one));
}

/** Says how much less or longer a job would wait, and why. */
function verdict(now, one) {
  if (!isOther(now, one)) return [h("strong", null, "no difference: "), "it waits ", waitInWords(one)];
  const [before, after] = [secondsOf(now), secondsOf(one)];
  const change = after < before ? "it would wait less" : "it would wait longer";
  return [h("strong", null, change), `, ${duration(before)} → `, waitInWords(one)];
}

/** Returns in words how long a job waits, where, for how many jobs, and with how many it shares. */
function waitInWords(one) {
  return `${duration(secondsOf(one))} at most: ${place(one)}.`;
}

function place({ wait }) {
  if (wait === null) return "it has no known traffic";
  const { port, before_count: before, alike_count: alike } = wait;
  const others = counted(alike, "job");
  if (before === 0) return alike > 0 ? `it shares ${port} with ${others}` : "nobody is before it or beside it";
  const jobs = `${counted(before, "job goes", "jobs go")} before it at ${port}`;
  return alike > 0 ? `${jobs}, and it shares the port with ${others}` : jobs;
}

/** Says when the network has served all that is left of a job, and after how long it would as it is `now`. */
function served({ wait }, now = null) {
  if (wait === null) return null;
  const before = now?.wait ? `${duration(now.wait.seconds_until_served)} → ` : "";
  return ` Served after ${before}${duration(wait.seconds_until_served)} at most.`;
}

/** Says who would wait longer. */
function whoWaitsLonger({ later, later_count: count }) {
  if (count === 0) return "No other job would wait longer.";
  const shown = later.slice(0, MOST_NAMED);
  const more = count - shown.length;
  return [
    "Longer would wait: ",
    shown.map((one, i) => [
      i > 0 ? ", " : null,
      jobLink(one.job),
      ` (${duration(one.seconds_now)} → ${duration(one.seconds)})`,
    ]),
    more > 0 ? ` and ${more} more.` : ".",
  ];
}
