/** Plays a recorded run: the state at any of its moments. */

import { own } from "./own.js";
import { Parts } from "./parts.js";
import { apply, emptyState, isWhole, load, restore } from "./state.js";

export class Recorded {
  #api;
  #path;
  #recording;
  #facts;
  #parts;
  #onChange;
  #part = 0;
  #next = 0;
  #goal = null;
  #going = null;

  /** `facts` is what was recorded beside events; null: nothing was. `onChange` is called when a moment is reached. */
  constructor(api, number, recording, facts, onChange) {
    this.#api = api;
    this.#path = `/recordings/${number}`;
    this.#recording = recording;
    this.#facts = facts;
    this.#parts = new Parts(api, this.#path, recording.parts);
    this.#onChange = onChange;
    this.title = recording.title;
    this.seconds = recording.seconds;
    this.span = recording.seconds;
    this.reached = facts?.reached ?? null;
    this.isRecorded = true;
    this.connection = { isOpen: true, since: 0, problem: null };
    this.now = null;
    this.state = emptyState();
  }

  /** Lists the recordings that the server has, and reads their facts. */
  static async readAll(api, onChange) {
    const { recordings } = await api.get("/recordings");
    return Promise.all(
      recordings.map(async (recording, number) => {
        const facts = recording.has_facts ? await api.get(`/recordings/${number}/facts`) : null;
        return new Recorded(api, number, recording, facts, onChange);
      }),
    );
  }

  may() {
    return false;
  }

  want() {}

  /** Whether the state is still on the way to the moment that was asked for last. */
  get isBehind() {
    return this.#going !== null;
  }

  /** Go to a moment, in seconds since the start of the run. What is not there yet is read before. */
  seek(time) {
    this.#goal = Math.min(time, this.seconds);
    this.#going ??= this.#follow().finally(() => {
      this.#going = null;
      this.#onChange();
    });
  }

  async #follow() {
    try {
      while (this.now !== this.#goal) await this.#go(this.#goal);
      this.connection = { isOpen: true, since: 0, problem: null };
    } catch (error) {
      this.connection = { isOpen: false, since: 0, problem: error.message };
    }
  }

  async #go(goal) {
    const last = this.#parts.at(goal);
    if (this.now === null || goal < this.now || last > this.#part + 1) await this.#restart(last);
    for (;;) {
      const events = await this.#parts.events(this.#part);
      for (; this.#next < events.length && events[this.#next].time <= goal; this.#next += 1)
        apply(this.state, events[this.#next]);
      if (this.#part >= last) break;
      this.#part += 1;
      this.#next = 0;
    }
    this.now = goal;
    this.#settle();
    // What is played next is there when it is needed. Where it cannot be read, that is said then.
    if (last + 1 < this.#parts.moments.length) this.#parts.events(last + 1).catch(() => {});
  }

  /** Begin at the start of a part. */
  async #restart(part) {
    const [before] = await Promise.all([this.#parts.state(part), this.#parts.events(part)]);
    const state = emptyState();
    const facts = this.#facts;
    if (facts !== null) {
      const status = facts.status ? begun(facts.status) : null;
      load(state, { settings: facts.settings ?? null, network: facts.network ?? null, status }, 0);
    }
    restore(state, before);
    this.state = state;
    this.#part = part;
    this.#next = 0;
  }

  /** Adds to the state what no event tells. */
  #settle() {
    const { state } = this;
    state.time = this.now;
    for (const job of state.jobs.values()) {
      const known = own(this.#facts?.jobs, job.id);
      if (known !== undefined && !isWhole(job.spec))
        Object.assign(job, { spec: known.spec, measured_demand: known.measured_demand });
    }
    state.history = until(this.#facts?.history ?? null, this.now);
    if (state.network !== null)
      state.network = reporting(loaded(state.network, this.#facts.history ?? null, state.history), state);
  }

  /** Returns why a job had its place, as it was recorded last before this moment. Raises where nothing was recorded. */
  async explain(id, change = {}) {
    if (Object.keys(change).length > 0) throw new Error("a recorded run cannot be planned again");
    const query = new URLSearchParams({ job: id, until: String(this.now) });
    const found = this.#recording.has_explanations ? await this.#api.get(`${this.#path}/explanation?${query}`) : null;
    if (found === null) throw new Error("nothing was recorded of why this job has its place at this moment");
    return { ...found.explanation, recordedAt: found.time };
  }
}

/** Returns the status without what is recorded at the end of the run alone, and differs before. */
function begun(status) {
  const switches = status.switches.map((one) => ({ ...one, rules: null, repairs: 0 }));
  return { ...status, switches, problems: [], paused: false };
}

/** Returns the network with what events have said of its hosts and switches. */
function reporting(network, { hosts, switches }) {
  return {
    ...network,
    isRecorded: true,
    hosts: network.hosts.map((host) => ({ ...host, alive: hosts.get(host.name)?.alive ?? host.alive })),
    switches: network.switches.map((one) => ({ ...one, ready: switches.get(one.dpid)?.ready ?? one.ready })),
  };
}

/** Returns the history up to a moment. The columns of a job or port are cut when they are looked at. */
function until(history, now) {
  if (history === null) return null;
  const steps = Math.max(0, Math.min(history.steps, Math.floor((now - history.since) / history.step_seconds)));
  const cut = (columns) =>
    columns && Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values.slice(0, steps)]));
  const all = (group) => new Proxy(group, { get: (columns, name) => cut(own(columns, name)) });
  return { ...history, steps, jobs: all(history.jobs), ports: all(history.ports) };
}

/** Returns the network with the load of the history's step before `steps`. */
function loaded(network, history, cut) {
  if (history === null) return network;
  const load = (end) => {
    const columns = end.port === null ? undefined : history.ports[`${end.node}:${end.port}`];
    if (columns === undefined || cut.steps === 0) return null;
    return Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [
        name,
        ((values[cut.steps - 1] ?? 0) * 8) / history.step_seconds,
      ]),
    );
  };
  return {
    ...network,
    // What is counted without classes is recorded at the end of the run alone.
    links: network.links.map((link) => ({
      ...link,
      a_to_b_load_bps: load(link.a),
      b_to_a_load_bps: load(link.b),
      a_to_b_total_bps: null,
      b_to_a_total_bps: null,
    })),
  };
}
