/** What is in force, what is busy, and what is wrong. */

import { contended, directions, enforcement, liveJobs, nextTarget, overBound, share } from "../data/select.js";
import { h } from "../ui/dom.js";
import { clock, compareNames, count, counted, duration, moment, names, number, percent, rate } from "../ui/format.js";
import { badge, bar, classChip, empty, fact, facts, jobLink, legend, loadBar, problems, section } from "../ui/parts.js";
import { sparkline } from "../ui/spark.js";
import { reachedSentence, timeline } from "../ui/timeline.js";

const MOST_JOBS = 20;
const MOST_PORTS = 12;

export const title = "Overview";

export function makePage() {
  return {
    wants: () => ["network"],
    render: (source) => {
      const { state } = source;
      return [
        source.reached ? jobsOverTime(source) : null,
        inForce(source),
        waiting(state),
        ports(state),
        state.status !== null || state.problems.length > 0 ? section("Problems", problems(state.problems)) : null,
      ];
    },
  };
}

function inForce(source) {
  const { state } = source;
  const { plan, status } = state;
  const running = liveJobs(state);
  if (plan === null)
    return section(
      "In force",
      empty(running.length === 0 ? "No job is registered, so there is no plan yet." : "There is no plan yet."),
    );
  const over = overBound(plan);
  const since = source.isRecorded ? `since ${moment(state.planSince)}` : `since ${clock(state.planSince)}`;
  return section(
    "In force",
    facts(
      fact("Policy", plan.policy, since),
      fact("State", mode(enforcement(state)), plan.degraded ?? enforcement(state).why),
      reporting(state),
      fact(
        "Jobs",
        String(running.length),
        `served in ${counted(new Set(Object.values(plan.classes)).size, "class", "classes")}`,
      ),
      fact(
        "Above the lower bound",
        over === null ? "–" : percent(over - 1, over < 1.1 ? 1 : 0),
        over === null
          ? "not known"
          : `jobs wait ${duration(plan.objective_seconds)} in the mean; no order gets below ${duration(plan.lower_bound_seconds)}`,
      ),
      status &&
        fact(
          "Plans",
          number(status.plans, 4),
          `${counted(status.plan_errors, "error")}; report to rule ${duration(status.report_to_rule.p50_seconds)}`,
        ),
    ),
    contention(state),
  );
}

function mode({ isOn }) {
  if (isOn === null) return badge("not known");
  return isOn ? badge("the order is enforced", "good") : badge("nothing is enforced", "warn");
}

/** How many agents report, and how many switches are ready. */
function reporting({ hosts, switches }) {
  if (hosts.size === 0) return null;
  const alive = [...hosts.values()].filter((host) => host.alive).length;
  const ready = [...switches.values()].filter((one) => one.ready).length;
  const isWhole = alive === hosts.size;
  return fact(
    "Agents",
    isWhole ? `all ${count(alive)} report` : badge(`${count(alive)} of ${count(hosts.size)} report`, "warn"),
    switches.size === 0
      ? "no switch has connected"
      : `${count(ready)} of ${counted(switches.size, "switch", "switches")} ready`,
  );
}

function contention(state) {
  const shared = contended(state);
  if (shared === null) return null;
  if (shared.size === 0)
    return h("p", { class: "note" }, "Ordering cannot help here: no two jobs send or receive at the same port.");
  const busiest = [...shared].sort((a, b) => b[1].length - a[1].length)[0];
  return h(
    "p",
    { class: "note" },
    `Jobs meet at ${counted(shared.size, "port")}. Most meet at ${busiest[0]}: ${names(busiest[1])}.`,
  );
}

function jobsOverTime(source) {
  return section(
    "Jobs over time",
    h("p", { class: "answer" }, reachedSentence(source)),
    timeline(source),
    h(
      "p",
      { class: "muted" },
      h("span", { class: "reached example" }),
      " 90 % of convergence, and the time from arrival to there",
    ),
  );
}

function waiting(state) {
  const order = new Map((state.plan?.order ?? []).flatMap((band, i) => band.map((job) => [job, i])));
  const jobs = liveJobs(state).sort(
    (a, b) => (order.get(a.id) ?? Infinity) - (order.get(b.id) ?? Infinity) || compareNames(a.id, b.id),
  );
  if (jobs.length === 0) return section("Jobs in their order", empty("No job is running."));
  return section(
    "Jobs in their order",
    h(
      "ol",
      { class: "queue" },
      jobs
        .slice(0, MOST_JOBS)
        .map((job) =>
          h(
            "li",
            { key: job.id },
            classChip(job.service_class),
            h("span", { class: "queue-name" }, jobLink(job.id), h("span", { class: "muted" }, job.spec?.model ?? "")),
            sparkline(state.lines.get(job.id) ?? [], nextTarget(job), job.spec?.metric?.name ?? "metric"),
            bar(share(job), `progress of ${job.id}`),
          ),
        ),
    ),
    jobs.length > MOST_JOBS ? h("p", null, h("a", { href: "#/jobs" }, `all ${count(jobs.length)} jobs`)) : null,
    h(
      "p",
      { class: "muted" },
      "First served first. The number is the class: class 0 goes first. ",
      h(
        "span",
        { class: "wide" },
        "The line is the metric so far; the bar above it says when the next target is expected (80 % interval). ",
      ),
      "Percent are of the whole run.",
    ),
  );
}

function ports(state) {
  if (state.network === null) return null;
  const all = directions(state.network).filter((one) => one.use !== null);
  if (all.length === 0) return section("Busiest ports", empty("No switch counts traffic by class."));
  const busiest = all.sort((a, b) => b.use - a.use || compareNames(a.name, b.name)).slice(0, MOST_PORTS);
  return section(
    "Busiest ports",
    h(
      "ul",
      { class: "ports" },
      busiest.map((one) =>
        h(
          "li",
          { key: one.name },
          h("span", { class: "port-name" }, one.name),
          loadBar(one.load, one.bps, one.name, `${percent(one.use)} of ${rate(one.bps)}`),
        ),
      ),
    ),
    legend(classesOf(state)),
  );
}

/** Returns how many classes are in use. */
function classesOf(state) {
  return Math.max(0, ...Object.values(state.plan?.classes ?? {})) + 1;
}

export { classesOf };
