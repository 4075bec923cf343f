/** Follows a running controller: its present state first, and then each event. */

import { ApiError } from "./api.js";
import { apply, emptyState, load } from "./state.js";
import { follow } from "./stream.js";

const REFRESH_MS = 5000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10000;
/** The history of more jobs is read minute by minute: an hour of 1,000 jobs is 12 MB otherwise. */
const MANY_JOBS = 100;
const [SAMPLE, MINUTE] = [5, 60];
/** The stream says every 15 s that it is alive. */
const SILENCE_MS = 40000;

export class Live {
  #api;
  #onChange;
  #onToken;
  #last = null;
  #plans = null;
  #wanted = new Set();

  /** `onChange` is called when the state has changed, `onToken` when a token is needed; it returns a promise. */
  constructor(api, { onChange, onToken }) {
    this.#api = api;
    this.#onChange = onChange;
    this.#onToken = onToken;
    this.state = emptyState();
    this.connection = { isOpen: false, since: Date.now() / 1000, problem: null };
    this.isRecorded = false;
    this.openedAt = this.now;
  }

  /** The time now, in seconds since the Unix epoch. */
  get now() {
    return Date.now() / 1000;
  }

  get api() {
    return this.#api;
  }

  /** Returns whether the caller's role may make a call, such as `PATCH /v1/settings`. */
  may(call) {
    return this.state.caller?.calls.includes(call) ?? false;
  }

  /** Follow for ever. */
  async run() {
    setInterval(() => this.#refresh(), REFRESH_MS);
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      try {
        await this.#once(() => (pause = FIRST_PAUSE_MS));
        this.#closed(null);
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) {
          await this.#onToken(this.#api.hasToken ? error.message : null);
          pause = FIRST_PAUSE_MS;
          continue;
        }
        this.#closed(error);
      }
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  #closed(error) {
    if (this.connection.isOpen || this.connection.problem === null)
      this.connection = { isOpen: false, since: this.now, problem: null };
    if (error !== null) this.connection.problem = error.message;
    this.#onChange();
  }

  /** Follow one stream to its end. The stream begins before the state is read, so that nothing is missed in between. */
  async #once(onOpen) {
    this.state.caller ??= await this.#api.get("/v1/caller");
    const ended = new AbortController();
    let watch = setTimeout(() => ended.abort(), SILENCE_MS);
    let loading = null;
    const early = [];
    try {
      const stream = follow(this.#api, this.#last, ended.signal, () => {
        onOpen();
        loading = this.#load().then(() => {
          this.connection = { isOpen: true, since: this.now, problem: null };
          for (const event of early.splice(0)) this.#take(event);
          this.#onChange();
        });
        loading.catch(() => ended.abort());
      });
      for await (const event of stream) {
        clearTimeout(watch);
        watch = setTimeout(() => ended.abort(), SILENCE_MS);
        if (this.connection.isOpen) this.#take(event);
        else early.push(event);
        this.#onChange();
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      clearTimeout(watch);
      ended.abort();
      this.connection = { ...this.connection, isOpen: false };
    }
    if (loading !== null) await loading;
  }

  #take(event) {
    this.#last = event.id;
    if (event.event === "gap") {
      this.#load().catch(() => {});
      return;
    }
    const isNew = event.event === "job" && event.data.state !== "removed" && !this.state.jobs.get(event.data.id)?.spec;
    apply(this.state, event);
    if (isNew) this.#loadJob(event.data.id);
    if (event.event === "plan") this.#loadPlan();
  }

  async #load() {
    const paths = {
      caller: "/v1/caller",
      jobs: "/v1/jobs",
      status: "/v1/status",
      plan: "/v1/plan",
      settings: "/v1/settings",
      network: "/v1/network",
    };
    const documents = {};
    await Promise.all(Object.entries(paths).map(async ([name, path]) => (documents[name] = await this.#allowed(path))));
    const isMany = (documents.jobs?.jobs.length ?? 0) > MANY_JOBS;
    documents.past = await this.#allowed(`/v1/history?ports=&step=${isMany ? MINUTE : SAMPLE}`);
    load(this.state, documents, this.now);
  }

  /** Returns a document, or null where the caller may not read it or there is none yet. */
  async #allowed(path) {
    const caller = this.state.caller;
    if (caller !== null && !caller.calls.includes(`GET ${path.split("?")[0]}`)) return null;
    try {
      return await this.#api.get(path);
    } catch (error) {
      if (error instanceof ApiError && [403, 503].includes(error.status)) return null;
      throw error;
    }
  }

  async #loadJob(id) {
    try {
      const job = await this.#api.get(`/v1/jobs/${encodeURIComponent(id)}`);
      const known = this.state.jobs.get(id);
      if (known !== undefined)
        this.state.jobs.set(id, { ...job, ...known, spec: job.spec, measured_demand: job.measured_demand });
      this.#onChange();
    } catch {
      // It is gone again; an event says so.
    }
  }

  /** The event of a plan has no reasons. They are read at most once a second. */
  #loadPlan() {
    this.#plans ??= setTimeout(async () => {
      this.#plans = null;
      try {
        const plan = await this.#allowed("/v1/plan");
        if (plan !== null) this.state.plan = plan;
        this.#onChange();
      } catch {
        // The stream ends too, and all is read again.
      }
    }, 1000);
  }

  /** Read now and then what a page shows and no event carries: `network`, `job:` with an id, `history:` with a query. */
  want(wanted) {
    const added = [...wanted].filter((name) => !this.#wanted.has(name));
    this.#wanted = new Set(wanted);
    if (added.length > 0) this.#refresh(added);
  }

  async #refresh(only = null) {
    if (!this.connection.isOpen || document.hidden) return;
    const names = only ?? [...this.#wanted, "status"];
    try {
      for (const name of names) {
        if (name === "network") load(this.state, { network: await this.#allowed("/v1/network") }, this.now);
        else if (name === "status") load(this.state, { status: await this.#allowed("/v1/status") }, this.now);
        else if (name.startsWith("job:")) await this.#loadJob(name.slice("job:".length));
        else this.state.history = { name, ...(await this.#allowed(`/v1/history?${name.slice("history:".length)}`)) };
      }
      this.#onChange();
    } catch {
      // Where the controller is gone the stream says so, and what it refuses is not shown.
    }
  }

  /** Returns why a job has its place, as `GET /v1/jobs/{id}/explain`, also with another weight, target or policy. */
  explain(id, change = {}) {
    const query = new URLSearchParams(Object.entries(change).map(([name, value]) => [name, String(value)])).toString();
    return this.#api.get(`/v1/jobs/${encodeURIComponent(id)}/explain${query ? `?${query}` : ""}`);
  }
}
