/** Follows a running controller: its present state first, and then each event. */

import { ApiError } from "./api.js";
import { Offset } from "./offset.js";
import { apply, emptyState, isWhole, load } from "./state.js";
import { follow } from "./stream.js";

const REFRESH_MS = 5000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10000;
/** The history of more jobs is read minute by minute: an hour of 1,000 jobs is 12 MB otherwise. */
const MANY_JOBS = 100;
const MINUTE = 60;
/** The stream says every 15 s that it is alive. */
const SILENCE_MS = 40000;

/**
 * Returns this machine's time in seconds since the Unix epoch, by its clock as it was when the page was opened: somebody
 * may set the clock meanwhile.
 */
const localTime = () => (performance.timeOrigin + performance.now()) / 1000;

/** Resolves when somebody sees the page. */
async function untilVisible() {
  while (document.hidden)
    await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
}

export class Live {
  #api;
  #onChange;
  #onToken;
  #needsToken;
  #last = null;
  #offset = new Offset();
  #isLoaded = false;
  #early = [];
  #asked = new Set();
  #plans = null;
  #wanted = new Set();

  /**
   * `needsToken`: no call is answered without one. `onChange` is called when the state has changed, `onToken` when a token
   * is needed; it returns a promise.
   */
  constructor(api, { needsToken, onChange, onToken }) {
    this.#api = api;
    this.#onChange = onChange;
    this.#onToken = onToken;
    this.#needsToken = needsToken;
    this.state = emptyState();
    this.connection = { isOpen: false, since: localTime(), problem: null };
    this.isRecorded = false;
    this.openedAt = this.now;
  }

  /** The controller's time now, in seconds since the Unix epoch: this machine's clock, and how far events show it off. */
  get now() {
    return localTime() + this.#offset.seconds;
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
    if (this.#needsToken && !this.#api.hasToken) await this.#onToken(null);
    let pause = FIRST_PAUSE_MS;
    for (;;) {
      await untilVisible();
      try {
        await this.#once(() => (pause = FIRST_PAUSE_MS));
        this.#closed(null);
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) {
          await this.#onToken(this.#api.hasToken ? error.message : null);
          // Another token may be somebody else's.
          this.state = emptyState();
          this.#last = null;
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

  /**
   * Follow one stream to its end. The stream begins before the state is read, so that nothing is missed in between. It
   * ends when nobody sees the page: a browser has few connections to one address.
   */
  async #once(onOpen) {
    this.state.caller ??= await this.#api.get("/v1/caller");
    const ended = new AbortController();
    let watch = setTimeout(() => ended.abort(), SILENCE_MS);
    const onLife = () => {
      clearTimeout(watch);
      watch = setTimeout(() => ended.abort(), SILENCE_MS);
    };
    const leave = () => document.hidden && ended.abort();
    document.addEventListener("visibilitychange", leave);
    let loading = null;
    const begun = () => {
      onOpen();
      loading = this.#reload().then(() => {
        this.connection = { isOpen: true, since: this.now, problem: null };
        this.#onChange();
      });
      loading.catch(() => ended.abort());
    };
    try {
      for await (const event of follow(this.#api, this.#last, ended.signal, { onOpen: begun, onLife })) {
        this.#last = event.id;
        if (this.#isLoaded) this.#take(event);
        else this.#early.push(event);
        this.#onChange();
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      clearTimeout(watch);
      document.removeEventListener("visibilitychange", leave);
      ended.abort();
      this.connection = { ...this.connection, isOpen: false };
    }
    if (loading !== null) await loading;
  }

  /** Read the state. What comes meanwhile is newer, and waits. */
  async #reload() {
    this.#isLoaded = false;
    await this.#load();
    this.#isLoaded = true;
    for (const event of this.#early.splice(0)) this.#take(event, true);
  }

  /** `isCovered`: the state was read after what a gap leaves out. */
  #take(event, isCovered = false) {
    this.#offset.take(event.time, localTime());
    const id = event.event === "job" && event.data.state !== "removed" ? event.data.id : null;
    const isNew = id !== null && !isWhole(this.state.jobs.get(id)?.spec);
    apply(this.state, event);
    if (event.event === "gap" && !isCovered) this.#reload().catch(() => {}); // the stream ends too
    if (isNew && !this.#asked.has(id)) this.#loadJob(id);
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
    documents.past = await this.#past(isMany ? `&step=${MINUTE}` : "");
    load(this.state, documents, this.now);
  }

  /** Returns a document; null where there is none yet, and undefined where the caller may not read it. */
  async #allowed(path) {
    if (!this.may(`GET ${path.split("?")[0]}`)) return undefined;
    try {
      return await this.#api.get(path);
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return undefined;
      if (error instanceof ApiError && error.status === 503) return null;
      throw error;
    }
  }

  /** Returns the history of the jobs, or null where it would be too large: without it, lines begin now. */
  async #past(step) {
    try {
      return await this.#allowed(`/v1/history?ports=${step}`);
    } catch (error) {
      if (error instanceof ApiError && error.status === 422) return null;
      throw error;
    }
  }

  async #loadJob(id) {
    this.#asked.add(id);
    try {
      const job = await this.#api.get(`/v1/jobs/${encodeURIComponent(id)}`);
      const known = this.state.jobs.get(id);
      if (known !== undefined)
        this.state.jobs.set(id, { ...job, ...known, spec: job.spec, measured_demand: job.measured_demand });
      this.#onChange();
    } catch {
      // It is gone again; an event says so.
    } finally {
      this.#asked.delete(id);
    }
  }

  /** The event of a plan has no reasons. They are read at most once a second. */
  #loadPlan() {
    this.#plans ??= setTimeout(async () => {
      this.#plans = null;
      try {
        const plan = await this.#allowed("/v1/plan");
        if (plan) this.state.plan = plan;
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

  /** Read one of these at once, because the caller has changed it. */
  read(name) {
    return this.#read(name);
  }

  async #refresh(only = null) {
    if (!this.connection.isOpen || document.hidden) return;
    await Promise.all((only ?? [...this.#wanted, "status"]).map((name) => this.#read(name)));
    this.#onChange();
  }

  async #read(name) {
    try {
      if (name.startsWith("job:")) await this.#loadJob(name.slice("job:".length));
      else if (name.startsWith("history:"))
        this.state.history = { name, ...(await this.#allowed(`/v1/history?${name.slice("history:".length)}`)) };
      else load(this.state, { [name]: await this.#allowed(`/v1/${name}`) }, this.now);
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
