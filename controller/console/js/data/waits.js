/** Whom each job waits for, by what is known of its traffic. */

import { counted } from "../ui/format.js";
import { own } from "./own.js";
import { isLive, portsOf, remembering } from "./select.js";

/** Round seconds to nanoseconds, so that two ports with the same jobs have the very same seconds. */
const NANO = 1e9;

/** Take this rate for a port whose rate is not known. */
const USUAL_BPS = 1e9;

/** Read the plan of at most this many jobs now and then, because waits become shorter while the order stays. */
const FEW_JOBS = 100;

/** Returns what a page that shows waits reads now and then. */
export function forWaits({ jobs }) {
  return jobs.size <= FEW_JOBS ? ["plan"] : [];
}

/** Of each state: the jobs that the last answer was for, and their places at each port. */
const places = new WeakMap();

/**
 * Returns an object whose `get(id)` returns for a live job with known traffic `{port, first, count, beside, seconds}`: the
 * port where it waits for longest, the job that is served first of those before it there (null: there is none), how many
 * are before it, how many of its class share the port with it, and for how long it waits there for all of them at most.
 * Returns null for a tenant, who does not see the jobs of others.
 *
 * The plan of a running controller says it. A recorded run does not, nor does a plan of which only the event has come yet:
 * then it is worked out here by the same rule, from what jobs declare. That is done when it is asked for, and the places
 * at ports only where a job, its class or its traffic differ from the last time: a page that shows thirty of a thousand
 * jobs asks four times a second.
 */
export function waits(state) {
  if (state.caller?.role === "tenant") return null;
  const said = state.plan?.waits;
  if (said) return { get: (id) => (isPlanned(state.jobs.get(id)) ? ofPlan(own(said, id)) : undefined) };
  const jobs = planned(state);
  const rates = ratesOf(state.network);
  let last = places.get(state);
  if (last === undefined || last.rates !== rates || !isSame(jobs, last.jobs)) {
    last = { jobs, rates, ports: placed(jobs, rates), byName: new Map(jobs.map((job) => [job.id, job])) };
    places.set(state, last);
  }
  const { ports, byName } = last;
  return {
    get: (id) => {
      const job = byName.get(id);
      return job && longest(job, rates, ports);
    },
  };
}

/** Returns where a job waits, of what the plan says of it. */
function ofPlan(wait) {
  if (wait === undefined) return undefined;
  const { port, first, before_count: count, alike_count: beside } = wait;
  return { port, first, count, beside, seconds: secondsOfWait(wait) };
}

/** Returns how long a job waits at most, of an answer of the controller: for the jobs before it, and for those beside it. */
export function secondsOfWait(wait) {
  return wait.seconds_before + (wait.seconds_beside ?? 0);
}

/** Returns in words where and for whom a job waits, of what `waits` has found; a dash where that is not known. */
export function waitsWhere(found, id) {
  const wait = found?.get(id);
  if (wait === undefined) return "–";
  const { port, first, count, beside } = wait;
  if (count > 0) return `at ${port} for ${first}${count > 1 ? ` and ${count - 1} more` : ""}`;
  return beside === 0 ? "for nobody" : `at ${port}, shared with ${counted(beside, "job")}`;
}

/** Returns the live jobs of the plan that have traffic: `{id, service, ports}`, class by class, in the order of the plan. */
function planned({ plan, jobs }) {
  const classes = [];
  for (const band of plan?.order ?? []) {
    for (const id of band) {
      const job = jobs.get(id);
      if (!isPlanned(job)) continue;
      const ports = portsOf(job);
      if (ports.size > 0)
        (classes[job.service_class] ??= []).push({ id, service: job.service_class, ports, left: iterationsLeft(job) });
    }
  }
  return classes.flat();
}

function isPlanned(job) {
  return job !== undefined && isLive(job) && Number.isInteger(job.service_class);
}

/** Returns the iterations that a job has left; of a run of unknown length as if it were one. */
function iterationsLeft(job) {
  const total = job.iterations_total ?? job.spec?.iterations;
  return typeof total === "number" ? Math.max(total - (job.iterations_done ?? 0), 0) : 1;
}

function isSame(jobs, others) {
  return (
    jobs.length === others.length &&
    jobs.every(
      ({ id, service, ports }, i) => id === others[i].id && service === others[i].service && ports === others[i].ports,
    )
  );
}

/**
 * Returns of each port the job that is served first, how many use it, and for each class how many of them are before it
 * and for how many seconds, and how many are not behind it and for how many seconds.
 */
function placed(jobs, rates) {
  const found = new Map();
  for (const { id, service, ports, left } of jobs) {
    for (const [port, bytes] of ports) {
      let at = found.get(port);
      if (at === undefined)
        found.set(
          port,
          (at = { first: id, count: 0, seconds: 0, before: [], secondsBefore: [], until: [], secondsUntil: [] }),
        );
      at.before[service] ??= at.count;
      at.secondsBefore[service] ??= at.seconds;
      at.count += 1;
      at.seconds += left * secondsOf(port, bytes, rates);
      at.until[service] = at.count;
      at.secondsUntil[service] = at.seconds;
    }
  }
  return found;
}

/** Returns how long a port needs for so many bytes. */
function secondsOf(port, bytes, rates) {
  return (bytes * 8) / (rates.get(port) ?? USUAL_BPS);
}

function longest({ service, ports, left }, rates, places) {
  let worst = null;
  for (const [port, bytes] of ports) {
    const at = places.get(port);
    const needed = secondsOf(port, bytes, rates);
    const count = at.before[service];
    const beside = at.until[service] - count - 1;
    const others = beside === 0 ? at.secondsBefore[service] : at.secondsUntil[service] - left * needed;
    const seconds = Math.max(0, Math.round(others * NANO) / NANO);
    if (worst !== null && (seconds < worst.seconds || (seconds === worst.seconds && needed <= worst.needed))) continue;
    worst = { port, first: count > 0 ? at.first : null, count, beside, seconds, needed };
  }
  return worst;
}

/** Returns the rates of the hosts' ports in bit/s, of all links of a host together, as far as they are known. */
function ratesOf(network) {
  return network === null ? NO_RATES : ratesIn(network);
}

const NO_RATES = new Map();

const ratesIn = remembering((network) => {
  const rates = new Map();
  for (const { a, a_to_b_bps: egress, b_to_a_bps: ingress } of network.links) {
    if (a.port !== null) continue;
    for (const [port, bps] of [
      [`${a.node} egress`, egress],
      [`${a.node} ingress`, ingress],
    ])
      if (bps) rates.set(port, (rates.get(port) ?? 0) + bps);
  }
  return rates;
});
