/** What is in force, what is busy, and what is wrong. */

import { directions, enforcement, liveJobs, nextTarget, overBound, share } from "../data/select.js";
import { forWaits, waits, waitsWhere } from "../data/waits.js";
import { h } from "../ui/dom.js";
import { clock, compareNames, count, counted, duration, moment, number, percent, rate } from "../ui/format.js";
import { badge, bar, classChip, empty, fact, facts, jobLink, legend, loadBar, problems, section } from "../ui/parts.js";
import { sparkline } from "../ui/spark.js";
import { reachedSentence, timeline } from "../ui/timeline.js";
import { meetings } from "./meetings.js";

const MOST_JOBS = 20;
const MOST_PORTS = 12;

export const title = "Overview";

export function makePage(_redraw, [part]) {
  return {
    part,
    wants: (state) => ["network", ...forWaits(state)],
    render: (source) => {
      const { state } = source;
      return [
        source.reached ? jobsOverTime(source) : null,
        inForce(source),
        waiting(source),
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
  const when = source.isRecorded ? moment(state.planSince) : clock(state.planSince);
  const since = Number.isInteger(plan.epoch) ? `plan ${plan.epoch}, since ${when}` : `since ${when}`;
  return section(
    "In force",
    facts(
      fact("Policy", plan.policy, since),
      fact("State", mode(enforcement(state)), plan.degraded ?? enforcement(state).why),
      reporting(state),
      fact(
        "Jobs",
        count(running.length),
        `served in ${counted(new Set(Object.values(plan.classes)).size, "class", "classes")}`,
      ),
      fact(
        "From the best order",
        over === null ? "–" : `${percent(over - 1, over < 1.1 ? 1 : 0)} at most`,
        over === null
          ? "not known"
          : `jobs are served after ${duration(plan.objective_seconds)} in the mean; no order gets below ${duration(plan.lower_bound_seconds)}`,
      ),
      // What was recorded of them is from the end of the run.
      status && !source.isRecorded && fact("Plans computed", number(status.plans, 4), plansMade(status)),
    ),
    meetings(state),
  );
}

function plansMade({ plan_errors: errors, report_to_rule: { p50_seconds: median } }) {
  const latency = median === null ? "" : `; a report is in the switches' rules after ${duration(median)}`;
  return `since it started; only one that changes a class or the policy gets a number. ${counted(errors, "error")}${latency}`;
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

function waiting(source) {
  const { state } = source;
  const order = new Map((state.plan?.order ?? []).flatMap((band, i) => band.map((job) => [job, i])));
  const jobs = liveJobs(state).sort(
    (a, b) => (order.get(a.id) ?? Infinity) - (order.get(b.id) ?? Infinity) || compareNames(a.id, b.id),
  );
  if (jobs.length === 0) return section("Jobs in their order", empty("No job is running."));
  const found = waits(state);
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
            found && h("span", { class: "queue-wait muted" }, `waits ${waitsWhere(found, job.id)}`),
            sparkline(state.lines.get(job.id) ?? [], nextTarget(job), job.spec?.metric?.name ?? "metric"),
            bar(share(job), `progress of ${job.id}`),
          ),
        ),
    ),
    jobs.length > MOST_JOBS ? h("p", null, h("a", { href: "#/jobs" }, `all ${count(jobs.length)} jobs`)) : null,
    h(
      "p",
      { class: "muted" },
      "First served first. The number is the class: at a port, a lower class goes first. ",
      `A job's page says why it waits${source.may("GET /v1/plan") ? ", and what would help" : ""}. `,
      h(
        "span",
        { class: "wide" },
        "The line is the metric so far; the bar above it says when the job's target, or else 90 % or 95 % of its convergence, is expected (80 % interval). ",
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
          loadBar(one.load, one.bps, one.name, `${percent(one.use)} of ${rate(one.bps)}`, one.total),
        ),
      ),
    ),
    legend(classesOf(state)),
    h(
      "p",
      { class: "muted" },
      "Measured over the last 5 s, so classes that jobs had then are in it. Class 0 also carries packets without data, ARP and the controller's own traffic. What hosts send (egress) is counted in all classes together.",
    ),
  );
}

/** Returns how many classes are in use. */
function classesOf(state) {
  return Math.max(0, ...Object.values(state.plan?.classes ?? {})) + 1;
}

export { classesOf };
