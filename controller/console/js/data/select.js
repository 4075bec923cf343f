/** What pages show, computed from the state. All functions are pure; what they return is not to be changed. */

/** Returns a function that answers as `compute` does, and remembers its answer for each object. */
export function remembering(compute) {
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

/**
 * Returns the ports that a job sends or receives at, as `host direction`, with the bytes of one iteration, or of an epoch
 * where its progress counts epochs. The interfaces of a host count together.
 */
export const portsOf = byTraffic((job) => {
  const ports = new Map();
  const add = (port, bytes) => ports.set(port, (ports.get(port) ?? 0) + bytes);
  const declared = job.spec?.demand ?? [];
  const measured = job.measured_demand ?? [];
  const isDeclared = declared.length > 0 && (job.spec?.unit !== "epoch" || measured.length === 0);
  for (const { src, dst, bytes } of isDeclared ? declared : measured) {
    add(`${serverOf(src)} egress`, bytes);
    add(`${serverOf(dst)} ingress`, bytes);
  }
  return ports;
});

/** Returns the host of an interface, whose name is `host/interface` where the host has several. */
function serverOf(name) {
  return name.split("/", 1)[0];
}

function interfaceOf(end) {
  return end.interface == null ? end.node : `${end.node}/${end.interface}`;
}

/** Returns the hosts that a job runs on. */
export const hostsOf = byTraffic((job) => {
  const spec = job.spec ?? { tasks: [], flows: [], demand: [] };
  const ends = [...spec.flows, ...spec.demand, ...(job.measured_demand ?? [])].flatMap(({ src, dst }) => [
    serverOf(src),
    serverOf(dst),
  ]);
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

/** Returns whether a job is running or waiting. */
export function isLive(job) {
  return job.state === "running" || job.state === "waiting";
}

/** Returns the running and waiting jobs. */
export function liveJobs(state) {
  return [...state.jobs.values()].filter(isLive);
}

/**
 * Returns the ports of hosts that two or more running jobs use, with their jobs; null where it is not known: of some
 * job no traffic is known, jobs of others are not shown, or links between switches may be where jobs meet.
 */
export function contended(state) {
  const users = new Map();
  const live = liveJobs(state);
  for (const job of live) {
    for (const port of portsOf(job).keys()) {
      if (users.has(port)) users.get(port).push(job.id);
      else users.set(port, [job.id]);
    }
  }
  const shared = new Map([...users].filter(([, jobs]) => jobs.length > 1));
  const isWhole = live.length > 0 && live.every((job) => portsOf(job).size > 0);
  if (shared.size === 0 && (!isWhole || mayMeetInside(state) || state.caller?.role === "tenant")) return null;
  return shared;
}

/** Returns whether jobs may meet at links between switches: where there are some, and where the network is not known. */
function mayMeetInside({ network }) {
  return network?.links.some(({ a, b }) => a.port !== null && b.port !== null) ?? true;
}

/** Returns how many times longer than the lower bound the plan lets jobs wait; null where it is not known. */
export function overBound(plan) {
  const { objective_seconds: objective, lower_bound_seconds: bound } = plan ?? {};
  return typeof objective === "number" && typeof bound === "number" && bound > 0 ? objective / bound : null;
}

/**
 * Returns each link of the network in each direction: its name, rate, load by class and in all, in bit/s, and the share in
 * use. A host's link is called as elsewhere, `h1 egress`, which is `port`, with the switch's port in brackets.
 */
export function directions(network) {
  return network === null ? [] : directionsOf(network);
}

const directionsOf = remembering((network) => {
  const all = [];
  for (const link of network.links) {
    const ends = [link.a, link.b].map((end) =>
      end.port === null ? interfaceOf(end) : `${shortDpid(end.node)} port ${end.port}`,
    );
    const isOfHost = link.a.port === null;
    const ports = isOfHost ? [`${ends[0]} egress`, `${ends[0]} ingress`] : [null, null];
    const names = isOfHost
      ? ports.map((port) => `${port} (${ends[1]})`)
      : [`${ends[0]} → ${ends[1]}`, `${ends[1]} → ${ends[0]}`];
    all.push({
      ...direction(link, names[0], link.a_to_b_bps, link.a_to_b_load_bps, link.a_to_b_total_bps, link.a, link.b),
      port: ports[0],
    });
    all.push({
      ...direction(link, names[1], link.b_to_a_bps, link.b_to_a_load_bps, link.b_to_a_total_bps, link.b, link.a),
      port: ports[1],
    });
  }
  return all;
});

/** `sum` is the load in all classes together, if it is told. Of what a host sends, only this is counted. */
function direction(link, name, bps, load, sum, from, to) {
  const total = load === null ? (sum ?? null) : Object.values(load).reduce((all, value) => all + value, 0);
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

/** Returns whether a job has reached a target: as the policy says, or, where it does not say so, by the iteration. */
export function isReached(job, target) {
  return target.reached ?? target.iteration <= job.iterations_done;
}

/** What the targets of a job are called. */
export const TARGET_NAMES = { t90: "90 % of convergence", t95: "95 % of convergence", target: "its declared target" };

/** Returns the target that a job is expected to reach next: its own, else 90 %, else 95 % of convergence. */
export function nextTarget(job) {
  for (const name of ["target", "t90", "t95"]) {
    const found = job.targets?.[name];
    if (found && typeof found.iteration === "number" && !isReached(job, found))
      return { name, ...found };
  }
  return null;
}

/** Returns the stages with their jobs, the best metric first. */
export function studies(state) {
  const members = new Map();
  for (const job of state.jobs.values()) {
    const stage = job.spec?.stage;
    if (!stage) continue;
    if (!members.has(stage)) members.set(stage, []);
    members.get(stage).push(job);
  }
  for (const [id, stage] of state.stages) {
    const known = members.get(id) ?? [];
    const isKnown = new Set(known);
    const more = stage.jobs.map((job) => state.jobs.get(job)).filter((job) => job !== undefined && !isKnown.has(job));
    members.set(id, [...known, ...more]);
  }
  return [...members]
    .map(([id, jobs]) => ({
      id,
      state:
        state.stages.get(id)?.state ??
        (jobs.some(isLive) ? "running" : "ended"),
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

/** Returns whether the order is enforced (null: it is not known), and in words why not. */
export function enforcement({ status, settings }) {
  if (status?.paused || settings?.pause) return { isOn: false, why: "an operator has paused" };
  if (status === null) return { isOn: null, why: null };
  if (status.enforce.length === 0) return { isOn: false, why: "the settings say to observe only" };
  const missing = status.not_ready ?? [];
  return missing.length > 0 ? { isOn: false, why: missing.join("; ") } : { isOn: true, why: null };
}
