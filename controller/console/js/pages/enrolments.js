/** The part of the hosts page on hosts that have asked to be added: an operator approves, refuses or removes them. */

import { confirm } from "../ui/dialog.js";
import { h } from "../ui/dom.js";
import { clock, counted, rate } from "../ui/format.js";
import { badge, fact, facts, section } from "../ui/parts.js";
import { makeTable } from "../ui/table.js";

const BADGES = { pending: ["waits", "warn"], refused: ["refused", "bad"], approved: ["approved", "good"] };
const CHANGE = "PUT /v1/hosts/{host}";

/** Returns the hosts that somebody has to look at: those that wait or were refused, and approved ones with a problem. */
export function enrolmentsOf(state) {
  return (state.enrolments ?? []).filter(
    (host) => host.state !== "listed" && (host.state !== "approved" || host.problems.length > 0),
  );
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
      host.state === "approved" ? null : button("Approve", approve, "main"),
      host.state === "pending" ? button("Refuse", refuse) : null,
      host.state === "refused" ? button("Forget", remove) : null,
    ]);
  }

  const table = makeTable({
    label: "hosts that ask to be added",
    sortBy: "host",
    redraw,
    key: (row) => row.name,
    text: (row) => [row.name, row.state, row.mac, row.asked_from, ...row.addresses].filter(Boolean).join(" "),
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
      { name: "address", title: "Address", sort: (row) => row.addresses[0], cell: (row) => row.addresses[0] },
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

function link(host) {
  return host.is_rate_known ? rate(host.ingress_bps) : badge("not told", "warn");
}

function place(host) {
  return host.switch === null ? "–" : `${host.switch.replace(/^0+(?=.)/, "")}:${host.port}`;
}

function problems(host) {
  const text = host.problems.join("; ");
  return text === "" ? "–" : h("span", { title: text }, text);
}

function preview(host) {
  return [
    facts(
      fact("Addresses", host.addresses.join(", ")),
      fact("MAC address", host.mac ?? "not told"),
      fact("Link", host.is_rate_known ? rate(host.ingress_bps) : "not told, taken for 1 Gbit/s"),
      fact("Port", host.switch === null ? "not found" : `port ${host.port} of switch ${host.switch}`),
      fact("Asked from", host.asked_from),
    ),
    host.problems.length === 0 ? null : h("p", { class: "bad-news" }, host.problems.join("; ")),
    h("p", null, "Its agent may then report, and its traffic gets the classes of its jobs."),
  ];
}
