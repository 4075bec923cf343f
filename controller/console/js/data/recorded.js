/** Plays a recorded run: the state at any of its moments. */

import { apply, emptyState, isWhole, load } from "./state.js";

export class Recorded {
  #events;
  #facts;
  #explanations;
  #next = 0;

  /** `events` are the run's events in order. `facts` and `explanations` may be missing (null and empty). */
  constructor(recording, events, facts, explanations) {
    this.#events = events;
    this.#facts = facts;
    this.#explanations = explanations;
    this.title = recording.title;
    this.seconds = recording.seconds;
    this.span = recording.seconds;
    this.reached = facts?.reached ?? null;
    this.isRecorded = true;
    this.connection = { isOpen: true, since: 0, problem: null };
    this.now = 0;
    this.#restart();
  }

  /** Reads the recordings that the server has. */
  static async readAll(api) {
    const { recordings } = await api.get("/recordings");
    return Promise.all(
      recordings.map(async (recording, number) => {
        const read = async (file) =>
          recording.files.includes(file) ? (await api.open(`/recordings/${number}/${file}`)).text() : null;
        const [events, facts, explanations] = await Promise.all([
          read("events.jsonl"),
          read("facts.json"),
          read("explanations.jsonl"),
        ]);
        return new Recorded(recording, lines(events), facts === null ? null : JSON.parse(facts), lines(explanations));
      }),
    );
  }

  may() {
    return false;
  }

  want() {}

  #restart() {
    this.state = emptyState();
    this.#next = 0;
    const facts = this.#facts;
    if (facts === null) return;
    const status = facts.status ? { ...facts.status, problems: [], paused: false } : null;
    load(this.state, { settings: facts.settings ?? null, network: facts.network ?? null, status }, 0);
    this.state.plan = null;
  }

  /** Go to a moment, in seconds since the start of the run. */
  seek(time) {
    if (time < this.now) this.#restart();
    this.now = Math.min(time, this.seconds);
    for (; this.#next < this.#events.length && this.#events[this.#next].time <= this.now; this.#next += 1) {
      apply(this.state, this.#events[this.#next]);
    }
    this.state.time = this.now;
    for (const job of this.state.jobs.values()) {
      const known = this.#facts?.jobs?.[job.id];
      if (known !== undefined && !isWhole(job.spec))
        Object.assign(job, { spec: known.spec, measured_demand: known.measured_demand });
    }
    this.state.history = until(this.#facts?.history ?? null, this.now);
    if (this.state.network !== null) this.state.network = loaded(this.state.network, this.state.history);
  }

  /** Returns why a job had its place, as it was recorded last before this moment. Raises where nothing was recorded. */
  async explain(id, change = {}) {
    if (Object.keys(change).length > 0) throw new Error("a recorded run cannot be planned again");
    const found = this.#explanations.findLast((one) => one.job === id && one.time <= this.now);
    if (found === undefined) throw new Error("nothing was recorded of why this job has its place at this moment");
    return { ...found.explanation, recordedAt: found.time };
  }
}

function lines(text) {
  if (text === null) return [];
  return text
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return []; // a run that was cut may end amid a line
      }
    });
}

/** Returns the history up to a moment. */
function until(history, now) {
  if (history === null) return null;
  const steps = Math.max(0, Math.min(history.steps, Math.floor((now - history.since) / history.step_seconds)));
  const cut = (columns) =>
    Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values.slice(0, steps)]));
  const all = (group) => Object.fromEntries(Object.entries(group).map(([name, columns]) => [name, cut(columns)]));
  return { ...history, steps, jobs: all(history.jobs), ports: all(history.ports) };
}

/** Returns the network with the load of the history's last step. */
function loaded(network, history) {
  if (history === null) return network;
  const load = (end) => {
    const columns = end.port === null ? undefined : history.ports[`${end.node}:${end.port}`];
    if (columns === undefined || history.steps === 0) return null;
    return Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, ((values.at(-1) ?? 0) * 8) / history.step_seconds]),
    );
  };
  return {
    ...network,
    links: network.links.map((link) => ({ ...link, a_to_b_load_bps: load(link.a), b_to_a_load_bps: load(link.b) })),
  };
}
