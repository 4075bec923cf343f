/** The classes that a job had over time. All functions are pure. */

import { own } from "./own.js";

/** Count the changes of a class within so many seconds. */
const RECENT_SECONDS = 60;

/** Returns the changes of a job's class, `[time, class]`: those of the last hour, and those that came since. Null: none. */
export function classHistory(state, id) {
  const known = state.classes.get(id) ?? [];
  const columns = own(state.history?.jobs, id);
  const { since, step_seconds: step } = state.history ?? {};
  const samples = columns?.service_class ?? [];
  // The first sample may be of a step that began before the job did. Of recorded runs the two clocks differ.
  const arrival = state.jobs.get(id)?.arrival ?? -Infinity;
  const first = arrival <= since + samples.length * step ? arrival : -Infinity;
  const past = samples
    .map((service, i) => [Math.max(since + i * step, first), service])
    .filter(([time, service]) => service !== null && (known.length === 0 || time < known[0][0]));
  const hasLeft = known.length === 0 && past.length > 0 && typeof state.jobs.get(id)?.service_class !== "number";
  if (hasLeft) past.push([past.at(-1)[0] + step, null]);
  return [...past, ...known].filter(([, service], i, all) => i === 0 || all[i - 1][1] !== service);
}

/**
 * Returns the intervals in which a job had a class: from, to and the class; null where it was not in the plan. The last
 * one ends at `now`, or where the job has left the plan.
 */
export function classIntervals(log, now) {
  const intervals = log.map(([from, service], i) => {
    const to = i + 1 < log.length ? log[i + 1][0] : now;
    return { from, to: Math.max(from, to), service }; // somebody may have set the clock back
  });
  return intervals.at(-1)?.service === null ? intervals.slice(0, -1) : intervals;
}

/** Returns the mean class over some intervals, by time; null where the job was in no plan. */
export function meanClass(intervals) {
  const held = intervals.filter(({ service }) => service !== null);
  const seconds = held.reduce((sum, { from, to }) => sum + to - from, 0);
  if (seconds === 0) return held.at(-1)?.service ?? null;
  return held.reduce((sum, { from, to, service }) => sum + service * (to - from), 0) / seconds;
}

/**
 * Returns since when a class has not changed, how often it has changed within the last minute, and its mean in that minute.
 * Null: no class is known.
 */
export function steadiness(log, now) {
  const intervals = classIntervals(log, now);
  if (intervals.length === 0) return null;
  const begin = now - RECENT_SECONDS;
  const recent = intervals.filter(({ to }) => to >= begin).map((one) => ({ ...one, from: Math.max(one.from, begin) }));
  return { since: intervals.at(-1).from, changes: Math.max(recent.length - 1, 0), mean: meanClass(recent) };
}
