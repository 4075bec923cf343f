/** The network as a graph, its links by load and class, the proofs of queues, and what switches refused. */

import { arrange } from "../data/graph.js";
import { directions, shortDpid } from "../data/select.js";
import { h } from "../ui/dom.js";
import { count, counted, number, percent, rate } from "../ui/format.js";
import { networkPicture } from "../ui/network_picture.js";
import { badge, empty, fact, facts, legend, loadBar, section } from "../ui/parts.js";
import { makeTable } from "../ui/table.js";
import { classesOf } from "./overview.js";

/** The widths that the picture is made for, in pixels. */
const ROOMS = [1000, 700, 480, 340];
/** A picture is scaled down to this at most, so that its names can be read. */
const SMALLEST_SCALE = 0.85;

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
          loadBar(
            one.load,
            one.bps,
            one.name,
            one.total === null ? "" : `${rate(one.total)}, ${percent(one.use)}`,
            one.total,
          ),
      },
      {
        name: "problem",
        title: "Problem",
        wide: "phone",
        sort: (one) => one.problems[0] ?? null,
        cell: (one) => one.problems.join("; ") || "–",
      },
    ],
  });

  /** The places change only when nodes and links do, and not with their load. */
  function placesOf(network) {
    const room = roomOf(document.querySelector(".run") ?? document.querySelector("main"));
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
        drawn = { network, places, parts: networkPicture(network, places, all) };
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

/** Returns the width that fits into a column of the page best. */
function roomOf(column) {
  const width = column?.clientWidth || innerWidth;
  return ROOMS.find((room) => room * SMALLEST_SCALE <= width) ?? ROOMS.at(-1);
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
  if (all.some((one) => one.load !== null)) return [legend(classesOf(state)), inOne(all)];
  return [
    h(
      "p",
      { class: "note" },
      state.network.isRecorded
        ? "No load by class is shown: the recording does not have it at this moment."
        : "No load by class is shown: no switch counts it. Only a switch that enforces the order does.",
    ),
    inOne(all),
  ];
}

/** Says what the grey lines are, where there are some. */
function inOne(all) {
  if (!all.some((one) => one.load === null && one.total !== null)) return null;
  return h("p", { class: "muted" }, "Grey: what a host sends to its switch, which is counted in all classes together.");
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
