/** The part of the hosts page on hosts that have asked to be added: an operator approves, refuses or removes them. */

import { confirm } from "../ui/dialog.js";
import { h } from "../ui/dom.js";
import { clock, counted, rate } from "../ui/format.js";
import { badge, fact, facts, section } from "../ui/parts.js";
import { makeTable } from "../ui/table.js";

const BADGES = { pending: ["waits", "warn"], refused: ["refused", "bad"] };
const CHANGE = "PUT /v1/hosts/{host}";

/** Returns the hosts that wait for a decision, or were refused. */
export function enrolmentsOf(state) {
  return (state.enrolments ?? []).filter((host) => host.state === "pending" || host.state === "refused");
}

/** Returns a function that draws the part for a source; nothing where nobody has asked. */
export function makeEnrolments(redraw) {
  let said = null;
  let source = null;

  async function act(change, text) {
    try {
      await change();
      said = { text, kind: "good-news" };
    } catch (error) {
      said = { text: error.message, kind: "bad-news" };
    }
    await source.read("hosts");
    redraw();
  }

  const path = (host) => `/v1/hosts/${encodeURIComponent(host.name)}`;
  const decide = (host, state) => source.api.send("PUT", path(host), { decision: { state } });

  async function approve(host) {
    if (await confirm(`Approve ${host.name}?`, preview(host), "Approve"))
      await act(() => decide(host, "approved"), `${host.name} is approved.`);
  }

  async function remove(host) {
    const text = h("p", null, "It may then ask anew.");
    if (await confirm(`Forget ${host.name}?`, text, "Forget"))
      await act(() => source.api.send("DELETE", path(host)), `${host.name} is forgotten.`);
  }

  const refuse = (host) => act(() => decide(host, "refused"), `${host.name} is refused.`);

  function actions(host) {
    if (!source.may(CHANGE) || source.isRecorded) return "–";
    const button = (text, run, kind = null) =>
      h(
        "button",
        {
          key: text,
          type: "button",
          class: kind,
          "aria-label": `${text} ${host.name}`,
          on: { click: () => run(host) },
        },
        text,
      );
    return h("span", { class: "decisions" }, [
      button("Approve", approve, "main"),
      host.state === "pending" ? button("Refuse", refuse) : null,
      host.state === "refused" ? button("Forget", remove) : null,
    ]);
  }

  const table = makeTable({
    label: "hosts that ask to be added",
    sortBy: "host",
    redraw,
    key: (row) => row.name,
    text: (row) =>
      [row.name, row.state, row.mac, row.asked_from, ...row.addresses, ...row.links.map((link) => link.mac)]
        .filter(Boolean)
        .join(" "),
    columns: [
      { name: "host", title: "Host", sort: (row) => row.name, cell: (row) => row.name },
      { name: "actions", title: "Decision", cell: actions },
      {
        name: "state",
        title: "State",
        wide: false,
        sort: (row) => row.state,
        cell: (row) => badge(...BADGES[row.state]),
      },
      { name: "address", title: "Address", sort: (row) => row.addresses[0], cell: addresses },
      { name: "rate", title: "Link", wide: false, sort: (row) => row.ingress_bps, cell: link },
      { name: "place", title: "Port", wide: false, sort: place, cell: place, help: "Where it has announced itself" },
      {
        name: "asked",
        title: "Asked",
        wide: false,
        sort: (row) => row.asked_at,
        cell: (row) => `${clock(row.asked_at)} from ${row.asked_from}`,
      },
      { name: "problems", title: "Look at", sort: (row) => row.problems.length, cell: problems },
    ],
  });

  return (from) => {
    source = from;
    const hosts = enrolmentsOf(from.state);
    if (hosts.length === 0 && said === null) return null;
    const waiting = hosts.filter((host) => host.state === "pending").length;
    return section(
      "Ask to be added",
      said && h("p", { class: said.kind, role: "status" }, said.text),
      h(
        "p",
        null,
        waiting === 0 ? "No host waits." : `${counted(waiting, "host waits", "hosts wait")} for a decision.`,
      ),
      hosts.length === 0 ? null : table(hosts),
    );
  };
}

/** Returns the first address of a host of `GET /v1/hosts`; of one with several interfaces, how many there are. */
export function addresses(host) {
  if (host.links.length === 0) return host.addresses[0] ?? "–";
  const title = host.links.map((link) => `${link.interface} ${link.addresses.join(", ")}`).join("; ");
  return h("span", { title }, `${host.addresses[0]}, ${counted(host.links.length, "interface", "interfaces")}`);
}

function link(host) {
  return host.is_rate_known ? rate(host.ingress_bps) : badge("not told", "warn");
}

function place(host) {
  if (host.links?.length > 0) return host.links.map(place).join(", ");
  return host.switch === null ? "–" : `${host.switch.replace(/^0+(?=.)/, "")}:${host.port}`;
}

function problems(host) {
  const text = host.problems.join("; ");
  return text === "" ? "–" : h("span", { title: text }, text);
}

/** Returns the facts of a host with one interface. */
function ofOnly(host) {
  return [
    fact("Addresses", host.addresses.join(", ")),
    fact("MAC address", host.mac ?? "not told"),
    fact("Link", host.is_rate_known ? rate(host.ingress_bps) : "not told, taken for 1 Gbit/s"),
    fact("Port", port(host)),
  ];
}

/** Returns one of several interfaces as a fact. */
function ofLink(one) {
  const mac = one.mac === null ? "no MAC address" : `MAC address ${one.mac}`;
  return fact(one.interface, [one.addresses.join(", "), mac, rate(one.ingress_bps), port(one)].join("; "));
}

function port(at) {
  return at.switch === null ? "not found" : `port ${at.port} of switch ${at.switch}`;
}

function preview(host) {
  return [
    facts(...(host.links.length > 0 ? host.links.map(ofLink) : ofOnly(host)), fact("Asked from", host.asked_from)),
    host.problems.length === 0 ? null : h("p", { class: "bad-news" }, host.problems.join("; ")),
    h("p", null, "Its agent may then report, and its traffic gets the classes of its jobs."),
  ];
}
