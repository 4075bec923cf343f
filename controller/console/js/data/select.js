/** What pages show, computed from the state. All functions are pure; what they return is not to be changed. */

/** Returns a function that answers as `compute` does, and remembers its answer for each object. */
function remembering(compute) {
  const known = new WeakMap();
  return (object) => {
    if (!known.has(object)) known.set(object, compute(object));
    return known.get(object);
  };
}

/** Returns a function of a job that computes anew only where the job has another spec or other measured traffic. */
function byTraffic(compute) {
  const known = new WeakMap();
  return (job) => {
    const { spec, measured_demand: measured } = job;
    if (!spec) return compute(job);
    const before = known.get(spec);
    if (before !== undefined && before.measured === measured) return before.answer;
    const answer = compute(job);
    known.set(spec, { measured, answer });
    return answer;
  };
}

/** Returns the ports that a job sends or receives at, as `host direction`, with the bytes of one iteration. */
export const portsOf = byTraffic((job) => {
  const ports = new Map();
  const add = (port, bytes) => ports.set(port, (ports.get(port) ?? 0) + bytes);
  const declared = job.spec?.demand ?? [];
  for (const { src, dst, bytes } of declared.length > 0 ? declared : (job.measured_demand ?? [])) {
    add(`${src} egress`, bytes);
    add(`${dst} ingress`, bytes);
  }
  return ports;
});

/** Returns the hosts that a job runs on. */
export const hostsOf = byTraffic((job) => {
  const spec = job.spec ?? { tasks: [], flows: [], demand: [] };
  const ends = [...spec.flows, ...spec.demand, ...(job.measured_demand ?? [])].flatMap(({ src, dst }) => [src, dst]);
  return [...new Set([...spec.tasks.map((task) => task.host), ...ends])].sort();
});

/**
 * Returns what has started a job that agents have found: its launcher, its hosts, and the first of them, which rank 0
 * runs on, or null. Returns null for a job that was registered whole.
 */
export function foundBy(job) {
  const hosts = (job.spec?.tasks ?? []).map((task) => task.host);
  // What an event has said of the spec is newer than the parts.
  if (job.spec?.launcher !== undefined)
    return job.spec.launcher && { launcher: job.spec.launcher, first: job.spec.first_host, hosts };
  const parts = Object.entries(job.parts ?? {});
  if (parts.length === 0) return null;
  const first = parts.find(([, part]) => part.is_first);
  return { launcher: (first ?? parts[0])[1].launcher, first: first?.[0] ?? null, hosts };
}

/** Returns the running and waiting jobs. */
export function liveJobs(state) {
  return [...state.jobs.values()].filter((job) => job.state === "running" || job.state === "waiting");
}

/**
 * Returns the ports of hosts that two or more running jobs use, with their jobs; null where it is not known: of some
 * job no traffic is known, jobs of others are not shown, or links between switches may be where jobs meet.
 */
export function contended(state) {
  const users = new Map();
  const live = liveJobs(state);
  for (const job of live) {
    for (const port of portsOf(job).keys()) users.set(port, [...(users.get(port) ?? []), job.id]);
  }
  const shared = new Map([...users].filter(([, jobs]) => jobs.length > 1));
  const isWhole = live.length > 0 && live.every((job) => portsOf(job).size > 0);
  const isFabric = state.network?.links.some(({ a, b }) => a.port !== null && b.port !== null) ?? false;
  if (shared.size === 0 && (!isWhole || isFabric || state.caller?.role === "tenant")) return null;
  return shared;
}

/** Returns how many times longer than the lower bound the plan lets jobs wait; null where it is not known. */
export function overBound(plan) {
  const { objective_seconds: objective, lower_bound_seconds: bound } = plan ?? {};
  return typeof objective === "number" && typeof bound === "number" && bound > 0 ? objective / bound : null;
}

/** Returns each link of the network in each direction: its name, rate, load by class in bit/s, and the share in use. */
export function directions(network) {
  return network === null ? [] : directionsOf(network);
}

const directionsOf = remembering((network) => {
  const all = [];
  for (const link of network.links) {
    const ends = [link.a, link.b].map((end) =>
      end.port === null ? end.node : `${shortDpid(end.node)} port ${end.port}`,
    );
    all.push(direction(link, `${ends[0]} → ${ends[1]}`, link.a_to_b_bps, link.a_to_b_load_bps, link.a, link.b));
    all.push(direction(link, `${ends[1]} → ${ends[0]}`, link.b_to_a_bps, link.b_to_a_load_bps, link.b, link.a));
  }
  return all;
});

function direction(link, name, bps, load, from, to) {
  const total = load === null ? null : Object.values(load).reduce((sum, value) => sum + value, 0);
  return {
    name,
    from,
    to,
    bps,
    load,
    total,
    use: total !== null && bps ? Math.min(total / bps, 1) : null,
    problems: link.problems,
  };
}

/** Returns the datapath id of a switch without its leading zeros. */
export function shortDpid(dpid) {
  return `s${dpid.replace(/^0+(?=.)/, "")}`;
}

/** Returns the share of its run that a job has done; null where its length is not known. */
export function share(job) {
  const total = job.iterations_total ?? job.spec?.iterations;
  return typeof total === "number" && total > 0 ? Math.min(job.iterations_done / total, 1) : null;
}

/** Returns the target that a job is expected to reach next: its own, else 90 %, else 95 % of convergence. */
export function nextTarget(job) {
  for (const name of ["target", "t90", "t95"]) {
    const found = job.targets?.[name];
    if (found && typeof found.iteration === "number" && found.iteration > job.iterations_done)
      return { name, ...found };
  }
  return null;
}

/** Returns the stages with their jobs, the best metric first. */
export function studies(state) {
  const members = new Map();
  for (const job of state.jobs.values()) {
    const stage = job.spec?.stage;
    if (stage) members.set(stage, [...(members.get(stage) ?? []), job]);
  }
  for (const [id, stage] of state.stages) {
    const known = members.get(id) ?? [];
    const more = stage.jobs
      .map((job) => state.jobs.get(job))
      .filter((job) => job !== undefined && !known.includes(job));
    members.set(id, [...known, ...more]);
  }
  return [...members]
    .map(([id, jobs]) => ({
      id,
      state:
        state.stages.get(id)?.state ??
        (jobs.some((job) => job.state === "running" || job.state === "waiting") ? "running" : "ended"),
      jobs: jobs.sort(better),
    }))
    .sort((a, b) => (a.state === b.state ? a.id.localeCompare(b.id) : a.state === "running" ? -1 : 1));
}

function better(a, b) {
  const sign = a.spec?.metric?.direction === "min" ? 1 : -1;
  const [left, right] = [a.last_metric, b.last_metric];
  if (typeof left !== "number" || typeof right !== "number")
    return (typeof left === "number" ? 0 : 1) - (typeof right === "number" ? 0 : 1);
  return sign * (left - right);
}

/** Returns the jobs of a plan by band, and how the class of each is in another plan: it goes earlier, later or the same. */
export function compared(plan, other) {
  return plan.order.map((band) =>
    band.map((job) => {
      const [service, there] = [plan.classes[job], other.classes[job]];
      const move = there === undefined ? "new" : there === service ? "same" : service < there ? "earlier" : "later";
      return { job, service, move };
    }),
  );
}

/** Returns whether the order is enforced (null: it is not known), and in words why not. */
export function enforcement({ status, settings }) {
  if (status?.paused || settings?.pause) return { isOn: false, why: "an operator has paused" };
  if (status === null) return { isOn: null, why: null };
  if (status.enforce.length === 0) return { isOn: false, why: "the settings say to observe only" };
  const missing = status.not_ready ?? [];
  return missing.length > 0 ? { isOn: false, why: missing.join("; ") } : { isOn: true, why: null };
}

/** Returns the changes of a job's class, `[time, class]`: those of the last hour, and those that came since. */
export function classHistory(state, id) {
  const known = state.classes.get(id) ?? [];
  const columns = state.history?.jobs?.[id];
  const { since, step_seconds: step } = state.history ?? {};
  const past = (columns?.service_class ?? [])
    .map((service, i) => [since + i * step, service])
    .filter(([time, service]) => service !== null && (known.length === 0 || time < known[0][0]));
  return [...past, ...known].filter(([, service], i, all) => i === 0 || all[i - 1][1] !== service);
}

/** Returns the intervals in which a job had a class: from, to and the class; the last one ends at `now`. */
export function classIntervals(log, now) {
  return log.map(([from, service], i) => ({ from, to: i + 1 < log.length ? log[i + 1][0] : now, service }));
}
