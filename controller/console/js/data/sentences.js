/** What an event says, in a sentence. Pure. */

import { counted, duration, names } from "../ui/format.js";
import { shortDpid } from "./select.js";

const HOSTS = {
  alive: "reports",
  silent: "is silent",
  removed: "was removed",
  pending: "asks to be added",
  refused: "was refused",
};

const SENTENCES = {
  plan: (data) =>
    `${data.policy} put ${data.epoch === null ? "another plan" : `plan ${data.epoch}`} in force${data.moves ? `: ${counted(data.moves, "job has", "jobs have")} another class` : ""}${data.lower_bound_seconds ? `; lower bound ${duration(data.lower_bound_seconds)}` : ""}`,
  job: (data) => `${data.id} is ${data.state}`,
  stage: (data) => `stage ${data.id} of a study is ${data.state}: ${names(data.jobs)}`,
  host: (data) => `host ${data.name} ${HOSTS[data.state] ?? data.state}`,
  switch: (data) =>
    `switch ${shortDpid(data.dpid)} ${data.ready ? "is ready" : data.connected ? `is not ready: ${data.reason ?? "its queues are being checked"}` : "is gone"}`,
  settings: (data) =>
    `the settings are: ${Object.entries({
      policy: data.policy,
      period: data.period_seconds === null ? null : duration(data.period_seconds),
      pause: data.pause,
    })
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ")}`,
  problem: (data) => `${data.state === "gone" ? "gone" : "problem"}: ${data.problem}`,
  audit: (data) =>
    `${data.who}: ${data.path ? `${data.action.split(" ")[0]} ${data.path}` : data.action} was ${data.outcome}${data.detail ? `: ${data.detail}` : ""}`,
  gap: (data) => `events ${data.first} to ${data.last} were missed`,
};

/** Returns an event in a sentence. */
export function sentence(event) {
  return SENTENCES[event.event]?.(event.data) ?? event.event;
}

/** Returns the job that an event is about, or null. */
export function jobOf(event) {
  return event.event === "job" ? event.data.id : null;
}
