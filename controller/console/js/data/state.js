/**
 * What is known of a cluster, and how an event changes it. The same code follows a running controller and replays a
 * recorded run.
 */

import { own } from "./own.js";

const LOG_LENGTH = 2000;
const CLASS_LOG_LENGTH = 500;
const POINTS = 256;

/** Returns the state before anything is known. Documents that are not known, or that the caller may not read, are null. */
export function emptyState() {
  return {
    time: null,
    caller: null,
    status: null,
    plan: null,
    settings: null,
    network: null,
    history: null,
    jobs: new Map(),
    stages: new Map(),
    hosts: new Map(),
    enrolments: null,
    switches: new Map(),
    problems: [],
    log: [],
    lines: new Map(),
    classes: new Map(),
    planSince: null,
  };
}

/** Puts documents of the API into the state. */
export function load(state, documents, time) {
  const { status, plan, settings, network, jobs, caller, past, hosts } = documents;
  if (caller !== undefined) state.caller = caller;
  if (status !== undefined) takeStatus(state, status);
  if (settings !== undefined) state.settings = settings;
  if (network !== undefined) takeNetwork(state, network);
  if (hosts !== undefined) state.enrolments = hosts?.hosts ?? null;
  if (jobs !== undefined) takeJobs(state, jobs?.jobs ?? []);
  if (plan !== undefined) takePlan(state, plan, time);
  if (past) takePast(state, past);
  state.time = time;
}

function takeStatus(state, status) {
  state.status = status;
  if (status === null) return;
  state.problems = [...status.problems];
  state.hosts = new Map(status.hosts.map((host) => [host.name, host]));
  state.switches = new Map(status.switches.map((one) => [one.dpid, one]));
}

function takeNetwork(state, network) {
  state.network = network;
  if (network === null || state.status !== null) return;
  state.hosts = new Map(network.hosts.map((host) => [host.name, host]));
  state.switches = new Map(network.switches.map((one) => [one.dpid, one]));
}

function takeJobs(state, jobs) {
  const before = state.jobs;
  state.jobs = new Map(
    jobs.map((job) => [job.id, { ...job, targets: job.targets ?? before.get(job.id)?.targets ?? {} }]),
  );
  state.stages.clear(); // those that run are told by their jobs
  for (const id of state.lines.keys()) if (!state.jobs.has(id)) state.lines.delete(id);
}

function takePlan(state, plan, time) {
  const isOther = state.planSince === null || state.plan?.epoch !== plan?.epoch;
  state.plan = plan;
  if (plan === null) return;
  if (isOther) state.planSince = time - (plan.age_seconds ?? 0); // its number stays while it is made again
  noteClasses(state, plan.classes, time);
}

/** Fills the lines of metrics from the history, as far as they go back. */
function takePast(state, history) {
  for (const [id, columns] of Object.entries(history.jobs)) {
    if (!state.jobs.has(id)) continue;
    state.lines.delete(id);
    columns.iterations_done.forEach((done, i) => {
      if (done !== null && columns.metric[i] !== null)
        notePoint(state, { id, iterations_done: done, last_metric: columns.metric[i] });
    });
  }
}

/** Changes the state by an event: a document of `GET /v1/events`. */
export function apply(state, event) {
  state.time = event.time;
  const isNews = CHANGES[event.event]?.(state, event.data, event.time) !== false;
  if (!isNews) return;
  state.log.push(brief(event));
  if (state.log.length > LOG_LENGTH) state.log.splice(0, state.log.length - LOG_LENGTH);
}

/** Returns of an event what its line in the log says. A plan has more than a line for each of its jobs. */
function brief(event) {
  const { data } = event;
  if (event.event === "job") return { ...event, data: { id: data.id, state: data.state } };
  if (event.event !== "plan") return event;
  const { order, classes, ...said } = data;
  return { ...event, data: said };
}

/**
 * Puts into an empty state what a recording says of the moment before one of its parts: the events that lead there, and
 * the log, lines and classes that grew meanwhile. `controller/cli/console/moment.py` computes it.
 */
export function restore(state, { events, log, lines, classes }) {
  for (const event of events) apply(state, event);
  state.log = [...log];
  state.lines = new Map(lines.map(([id, line]) => [id, [...line]]));
  state.classes = new Map(classes.map(([id, changes]) => [id, [...changes]]));
}

/** What each kind of event changes. Returns false where the event is not worth a line of its own: mere progress. */
const CHANGES = {
  plan(state, data, time) {
    const before = state.plan ?? { reasons: {}, errors: [], inversions: 0, options: {}, objective_seconds: null };
    const { classes } = data;
    if (typeof classes !== "object" || classes === null) return false;
    state.plan = { ...before, ...data, waits: null }; // those of the plan before
    state.planSince = time;
    for (const [id, job] of state.jobs) job.service_class = own(classes, id) ?? null;
    noteClasses(state, classes, time);
    return true;
  },
  job(state, data, time) {
    if (data.state === "removed") {
      state.jobs.delete(data.id);
      state.lines.delete(data.id);
      return true;
    }
    const before = state.jobs.get(data.id) ?? unknownJob(data.id, time);
    const { progress, description, ...rest } = data;
    const after = { ...before, ...rest, ...(progress ?? {}), ...(description ? described(before, description) : {}) };
    state.jobs.set(data.id, after);
    notePoint(state, after);
    return before.state !== data.state;
  },
  stage(state, data) {
    state.stages.set(data.id, data);
  },
  host(state, data) {
    if (data.state !== "alive" && data.state !== "silent") state.hosts.delete(data.name);
    else {
      const before = state.hosts.get(data.name) ?? { name: data.name, address: null };
      state.hosts.set(data.name, {
        ...before,
        alive: data.state === "alive",
        marks_acknowledgements: data.marks_acknowledgements,
      });
    }
  },
  switch(state, data) {
    state.switches.set(data.dpid, { ports: [], rules: null, ...state.switches.get(data.dpid), ...data });
  },
  settings(state, data) {
    state.settings = { ...state.settings, ...data };
    if (state.status !== null && typeof data.pause === "boolean")
      state.status = { ...state.status, paused: data.pause };
  },
  problem(state, data) {
    const kind = (text) => text.split(": ")[0];
    state.problems = state.problems.filter((problem) => kind(problem) !== kind(data.problem));
    if (data.state === "appeared") state.problems.push(data.problem);
  },
};

/** Returns whether a job's spec is the whole one, and not only what an event's description says of it. */
export function isWhole(spec) {
  return spec !== null && spec !== undefined && "model" in spec;
}

/** Returns what an event's description says of a job, in the form of its spec. */
function described(job, { arrival, demand, hosts, servers, ...declared }) {
  const tasks = (hosts ?? []).map((host) => ({ role: servers?.includes(host) ? "ps" : "worker", host, port: null }));
  const before = job.spec ?? { tasks: [], flows: [], demand: [] };
  const spec = { ...before, ...declared, ...(hosts ? { tasks } : {}), ...(demand ? { demand } : {}) };
  return { arrival, spec };
}

function unknownJob(id, time) {
  return {
    id,
    spec: null,
    arrival: time,
    iterations_done: 0,
    last_metric: null,
    service_class: null,
    measured_demand: [],
    problems: [],
    targets: {},
  };
}

function notePoint(state, job) {
  if (typeof job.last_metric !== "number") return;
  const line = state.lines.get(job.id) ?? [];
  const last = line[line.length - 1];
  if (last !== undefined && last[0] === job.iterations_done) return;
  if (last !== undefined && last[0] > job.iterations_done) line.length = 0; // a new run has begun
  line.push([job.iterations_done, job.last_metric]);
  // A long line keeps its shape with every other point.
  state.lines.set(
    job.id,
    line.length > POINTS ? line.filter((_point, i) => i % 2 === 0 || i === line.length - 1) : line,
  );
}

/** Notes the changes of classes: of a job that is not in the plan any more, null. */
function noteClasses(state, classes, time) {
  for (const [id, service] of Object.entries(classes)) {
    const log = state.classes.get(id) ?? [];
    if (log.length > 0 && log[log.length - 1][1] === service) continue;
    log.push([time, service]);
    if (log.length > CLASS_LOG_LENGTH) log.shift();
    state.classes.set(id, log);
  }
  for (const [id, log] of state.classes) {
    if (Object.hasOwn(classes, id)) continue;
    if (!state.jobs.has(id)) state.classes.delete(id);
    else if (log[log.length - 1][1] !== null) {
      log.push([time, null]);
      if (log.length > CLASS_LOG_LENGTH) log.shift();
    }
  }
}
