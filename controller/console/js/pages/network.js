/** The network as a graph, its links by load and class, the proofs of queues, and what switches refused. */

import { arrange } from "../data/graph.js";
import { directions, shortDpid } from "../data/select.js";
import { h } from "../ui/dom.js";
import { count, counted, number, percent, rate } from "../ui/format.js";
import { badge, empty, fact, facts, legend, loadBar, section } from "../ui/parts.js";
import { makeTable } from "../ui/table.js";
import { classesOf } from "./overview.js";

const ROOM = { wide: 1000, narrow: 340 };
const NARROW = "(max-width: 46rem)";

export const title = "Network";

export function makePage(redraw) {
  let placed = { stamp: null, places: null };
  let drawn = { network: null, places: null, parts: null };
  const links = makeTable({
    label: "links",
    sortBy: "use",
    descending: true,
    redraw,
    key: (one) => one.name,
    text: (one) => `${one.name} ${one.problems.join(" ")}`,
    columns: [
      { name: "link", title: "Link", sort: (one) => one.name, cell: (one) => one.name },
      { name: "rate", title: "Rate", wide: false, sort: (one) => one.bps, cell: (one) => rate(one.bps) },
      {
        name: "use",
        title: "In use",
        sort: (one) => one.use,
        cell: (one) =>
          loadBar(one.load, one.bps, one.name, one.total === null ? "" : `${rate(one.total)}, ${percent(one.use)}`),
      },
      {
        name: "problem",
        title: "Problem",
        wide: false,
        sort: (one) => one.problems[0] ?? null,
        cell: (one) => one.problems.join("; ") || "–",
      },
    ],
  });

  /** The places change only when nodes and links do, and not with their load. */
  function placesOf(network) {
    const room = matchMedia(NARROW).matches ? ROOM.narrow : ROOM.wide;
    const stamp = JSON.stringify([
      room,
      network.hosts.map((host) => host.name),
      network.switches.map((one) => one.dpid),
      network.links.map(({ a, b }) => [a, b]),
    ]);
    if (placed.stamp !== stamp) placed = { stamp, places: arrange(network, room) };
    return placed.places;
  }

  return {
    wants: () => ["network"],
    render: ({ state }) => {
      const { network } = state;
      if (network === null) return empty("The network is not known, or not shown to your role.");
      const all = directions(network);
      const places = placesOf(network);
      if (drawn.network !== network || drawn.places !== places)
        drawn = { network, places, parts: picture(network, places, all) };
      return [
        section(
          "Links by load and class",
          h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "the graph" }, drawn.parts),
          nodeLegend(),
          loads(state, all),
        ),
        ...network.switches.map((one) => switchPart(one, state.switches.get(one.dpid))),
        section("All links", links(all)),
      ];
    },
  };
}

function nodeLegend() {
  return h(
    "ul",
    { class: "legend", "aria-label": "signs of hosts and switches" },
    h(
      "li",
      null,
      h("span", { class: "sign alive", "aria-hidden": "true" }),
      "its agent reports, or the switch is ready",
    ),
    h("li", null, h("span", { class: "sign gone", "aria-hidden": "true" }), "it does not"),
  );
}

/** The colours of the lines, or why they have none. */
function loads(state, all) {
  if (all.some((one) => one.load !== null)) return legend(classesOf(state));
  return h(
    "p",
    { class: "note" },
    "No load is shown: no switch counts traffic by class. Only a switch that the order is enforced at does.",
  );
}

function picture(network, places, all) {
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
  const top = busiest(one.load ?? {});
  const isIdle = top === null;
  return h(
    "line",
    {
      key: one.name,
      class: isIdle ? "link" : `link stroke-${top}`,
      x1: from.x + dx,
      y1: from.y + dy,
      x2: to.x + dx,
      y2: to.y + dy,
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

function switchPart(one, known) {
  const proven = one.ports.filter((port) => port.problem === null).length;
  const refused = one.ports.filter((port) => port.problem !== null);
  return section(
    `Switch ${shortDpid(one.dpid)}`,
    facts(
      fact(
        "State",
        one.ready ? badge("ready", "good") : badge(one.connected ? "not ready" : "gone", "bad"),
        one.reason,
      ),
      fact(
        "Queues",
        one.ports.length === 0 ? "not probed" : `${count(proven)} of ${counted(one.ports.length, "port")} proven`,
        one.ports.length > 0 ? "test packets went through each port's queues and were counted" : null,
      ),
      known?.rules === null || known?.rules === undefined
        ? null
        : fact("Rules", number(known.rules, 5), known.bundles ? "changed as a whole (bundles)" : null),
      known?.repairs ? fact("Repairs", String(known.repairs), "changes by other programs that were undone") : null,
    ),
    refused.length > 0
      ? h(
          "ul",
          { class: "problems" },
          refused.map((port) =>
            h("li", null, h("strong", null, `port ${port.port} (${port.name})`), `: ${port.problem}`),
          ),
        )
      : null,
    one.problems.length > 0
      ? h(
          "ul",
          { class: "problems" },
          one.problems.map((problem) => h("li", null, problem)),
        )
      : null,
  );
}
