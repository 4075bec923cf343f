/** Who is before a job at each of its ports, and how full the ports are. */

import { directions } from "../../data/select.js";
import { secondsOfWait } from "../../data/waits.js";
import { h } from "../../ui/dom.js";
import { count, counted, duration, percent } from "../../ui/format.js";
import { classChip, section, stackedTable } from "../../ui/parts.js";
import { linked, MOST_NAMED, named } from "./names.js";

const MOST_PORTS = 4;

/** Who is before the job, or beside it, at each of its ports where somebody is. */
export function byPort(state, explained) {
  const waits = (explained?.ports ?? []).filter((port) => port.before_count + port.alike_count > 0);
  if (waits.length === 0) return null;
  return section(
    "Before it, by port",
    h(
      "p",
      { class: "muted" },
      `${howMany(explained)}h1 egress is what host h1 sends into the network, and h1 ingress what it receives. A time is what the port needs for all that a job has left.`,
    ),
    waitTable(state, waits.slice(0, MOST_PORTS), "who is before it, by port"),
    waits.length > MOST_PORTS
      ? h(
          "details",
          null,
          h("summary", null, counted(waits.length - MOST_PORTS, "more port")),
          waitTable(state, waits.slice(MOST_PORTS), "who is before it, by more ports"),
        )
      : null,
  );
}

/** Says how many jobs are before another in all, because one may be so at several ports. */
function howMany({ before_count: before }) {
  if (typeof before !== "number") return "";
  return `${counted(before, "job is", "jobs are")} before it, at one port or more. `;
}

function waitTable(state, ports, label) {
  return stackedTable({
    label,
    titles: ["Port", "Before it", "Shares with", "It waits at most", "Own need"],
    isHeaded: true,
    rows: ports.map((port) => ({
      key: port.port,
      cells: [
        portAndUse(state, port.port),
        port.before_count === 0 ? "nobody" : jobsBefore(port),
        port.alike_count === 0 ? "nobody" : sharing(port),
        duration(secondsOfWait(port)),
        `${duration(port.own_seconds_left)}; ${duration(port.own_seconds_per_iteration)} an iteration`,
      ],
    })),
  });
}

/** The jobs of its class at a port, with how long the port needs for them. */
function sharing({ alike, alike_count: all, seconds_beside: seconds }) {
  return [...linked(alike, all), h("span", { class: "muted" }, ` ${duration(seconds)}`)];
}

/** The name of a port, and how full it is where that is measured. */
function portAndUse(state, port) {
  const use = useOf(state, port);
  return use === null ? port : [port, h("div", { class: "muted" }, `${percent(use)} full`)];
}

/** The jobs before another at a port. Those that are too many to show can be unfolded, as far as their names are told. */
function jobsBefore({ before, before_count: all }) {
  const entries = [...before].sort((a, b) => a.service_class - b.service_class).map(jobBefore);
  const [shown, folded] = [entries.slice(0, MOST_NAMED), entries.slice(MOST_NAMED)];
  const [more, unnamed] = [all - shown.length, all - entries.length];
  return [
    h("ul", { class: "inline" }, shown),
    folded.length > 0
      ? h(
          "details",
          null,
          h("summary", null, `and ${count(more)} more`),
          h("ul", { class: "inline" }, folded),
          unnamed > 0 ? `and ${counted(unnamed, "job")} with less to send` : null,
        )
      : null,
  ];
}

function jobBefore(one) {
  return h(
    "li",
    null,
    classChip(one.service_class),
    " ",
    named(one.job),
    h("span", { class: "muted" }, ` ${duration(one.seconds_left)}`),
  );
}

/** Returns how full a port is, as far as it is measured. */
function useOf(state, port) {
  const found = directions(state.network).find((one) => one.port === port);
  return found?.use ?? null;
}

/** Returns in words what a port is, how full it is, and who measures it. */
export function useInWords(state, port) {
  const use = useOf(state, port);
  const what = `${port}${meaning(state, port)}`;
  if (use !== null) return `${what} is ${percent(use)} full: measured by its switch over the last 5 s.`;
  if (state.network?.isRecorded) return `${what}: the recording does not say how full it is.`;
  return `${what}: no switch counts its traffic, so nobody knows how full it is.`;
}

/** Returns in brackets what the port of a host is; nothing of a link between switches. */
function meaning(state, port) {
  const [host, direction] = port.split(" ");
  if (!state.hosts.has(host)) return "";
  return direction === "egress" ? ` (what ${host} sends)` : ` (what ${host} receives)`;
}
