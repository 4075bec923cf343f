/** The network as a graph: lines and squares in the colour of the class that sends most. */

import { shortDpid } from "../data/select.js";
import { h } from "./dom.js";
import { counted, percent, rate } from "./format.js";
import { empty } from "./parts.js";

/** Returns the graph with each node at its place in `places`; `all` are the directions of the links. */
export function networkPicture(network, places, all) {
  if (network.switches.length === 0) return empty("No switch has connected, and the settings name none.");
  return [
    graph(network, places, all),
    places.isDense
      ? h(
          "p",
          { class: "muted" },
          "A square is a host, in the colour of the class of which it receives most, and the fuller the more.",
        )
      : null,
  ];
}

function graph(network, places, all) {
  const alive = new Map(network.hosts.map((host) => [host.name, host.alive]));
  const ready = new Map(network.switches.map((one) => [one.dpid, one.ready]));
  const busy = all.filter((one) => (one.use ?? 0) > 0.5).length;
  const text = `${counted(network.hosts.length, "host")}, ${counted(network.switches.length, "switch", "switches")}, ${counted(network.links.length, "link")}; ${counted(busy, "direction")} more than half in use`;
  return h(
    "svg",
    {
      class: places.isDense ? "graph dense" : "graph",
      viewBox: `0 0 ${places.width} ${places.height}`,
      role: "img",
      "aria-label": text,
      // What is wider than the screen by its switches is scrolled, and not made too small to read.
      style: { "min-width": places.isWide && !places.isDense ? `${places.width * 0.8}px` : "0" },
    },
    h(
      "g",
      null,
      all.filter((one) => !places.isDense || isInner(one)).map((one) => line(one, places)),
    ),
    places.isDense ? h("g", null, squares(network, places, all)) : null,
    h(
      "g",
      null,
      [...places.nodes].map(([name, at]) =>
        at.kind === "switch"
          ? switchNode(name, at, ready.get(name))
          : places.isDense
            ? null
            : hostNode(name, at, alive.get(name)),
      ),
    ),
  );
}

/** Returns whether both ends are switches. */
function isInner(one) {
  return one.from.port !== null && one.to.port !== null;
}

/** Many hosts are squares. All of one look are one path, because a thousand elements take long to change. */
function squares(network, places, all) {
  const received = new Map(all.filter((one) => one.to.port === null).map((one) => [one.to.node, one]));
  const paths = new Map();
  for (const host of network.hosts) {
    const at = places.nodes.get(host.name);
    const look = lookOf(host, received.get(host.name));
    paths.set(look, `${paths.get(look) ?? ""}M${(at.x - 8).toFixed(1)} ${at.y - 8}h16v16h-16z`);
  }
  return [...paths].map(([look, d]) => h("path", { key: look, class: look, d }));
}

function lookOf(host, link) {
  if (!host.alive) return "square silent";
  const top = busiest(link?.load ?? {});
  return top === null ? "square" : `square stroke-${top} use-${Math.ceil((link.use ?? 0) * 4)}`;
}

/** Returns the class with the most load, or null where there is none. */
function busiest(load) {
  const top = Object.entries(load).reduce((most, one) => (most === null || one[1] > most[1] ? one : most), null);
  return top === null || top[1] === 0 ? null : top[0];
}

/** A link has two lines beside each other, one a direction; the line of a direction is as wide as its use. */
function line(one, places) {
  const from = places.nodes.get(one.from.node);
  const to = places.nodes.get(one.to.node);
  if (from === undefined || to === undefined) return null;
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [dx, dy] = [(-(to.y - from.y) / length) * 2.5, ((to.x - from.x) / length) * 2.5];
  const top = busiest(one.load ?? { all: one.total ?? 0 });
  const isIdle = top === null;
  const corners = [...(from.via ?? []).toReversed(), ...(to.via ?? [])];
  const points = [
    [from.x + dx, from.y + dy],
    ...corners.map(([x, y]) => [x + Math.sign(from.y - to.y) * 1.5, y]),
    [to.x + dx, to.y + dy],
  ];
  return h(
    "polyline",
    {
      key: one.name,
      class: isIdle ? "link" : `link stroke-${top}`,
      points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "),
      "stroke-width": isIdle ? 1 : (1 + (one.use ?? 0) * 5).toFixed(1),
    },
    h("title", null, `${one.name}: ${one.total === null ? "not counted" : `${rate(one.total)}, ${percent(one.use)}`}`),
  );
}

function switchNode(name, at, isReady) {
  return h(
    "g",
    { key: name, class: isReady ? "node switch" : "node switch bad", transform: `translate(${at.x} ${at.y})` },
    h("rect", { x: -34, y: -15, width: 68, height: 30, rx: 6 }),
    h("text", { "text-anchor": "middle", y: 4 }, shortDpid(name)),
    h("title", null, `switch ${name}${isReady ? "" : ", not ready"}`),
  );
}

function hostNode(name, at, isAlive) {
  const kind = isAlive ? "node host" : "node host silent";
  return h(
    "g",
    { key: name, class: kind, transform: `translate(${at.x} ${at.y})` },
    h("circle", { r: 8 }),
    h("text", { "text-anchor": "middle", y: 24 }, name),
    h("title", null, `host ${name}${isAlive ? "" : ": its agent is silent"}`),
  );
}
