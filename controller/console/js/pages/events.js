/** What has happened since the page was opened, and who has changed what. */

import { jobOf, sentence } from "../data/sentences.js";
import { h } from "../ui/dom.js";
import { clock, counted, moment } from "../ui/format.js";
import { badge, empty, jobLink, section, stackedTable } from "../ui/parts.js";

const MOST_LINES = 200;
/** Names each kind of event. A gap is what the page has missed. */
const KINDS = {
  plan: "plan",
  job: "job",
  stage: "stage of trials",
  host: "host",
  switch: "switch",
  settings: "settings",
  problem: "problem",
  audit: "audit",
  gap: "missed events",
};
const OUTCOMES = { done: "good", refused: "warn", failed: "bad" };

export const title = "Events and audit";

export function makePage(redraw) {
  const hidden = new Set();
  let trail = null;
  let problem = null;
  let askedFor = null;

  /** Asks for the newest records, and again when an event says that there is another one. */
  function askForAudit(source) {
    const newest = source.state.log.findLast((event) => event.event === "audit")?.id ?? 0;
    if (newest === askedFor || !source.may("GET /v1/audit")) return;
    askedFor = newest;
    source.api.get("/v1/audit?limit=100").then(
      (document) => ((trail = document), redraw()),
      (error) => ((problem = error.message), redraw()),
    );
  }

  const filter = () =>
    h(
      "fieldset",
      { class: "row" },
      h("legend", { class: "hidden" }, "kinds of events"),
      Object.entries(KINDS).map(([kind, name]) =>
        h(
          "label",
          { key: kind, class: "check" },
          h("input", {
            type: "checkbox",
            checked: !hidden.has(kind),
            on: { change: (event) => (event.target.checked ? hidden.delete(kind) : hidden.add(kind), redraw()) },
          }),
          name,
        ),
      ),
    );

  return {
    wants: () => [],
    render: (source) => {
      askForAudit(source);
      const shown = source.state.log.filter((event) => !hidden.has(event.event));
      return [
        section(
          "Events",
          filter(),
          source.isRecorded
            ? null
            : h(
                "p",
                { class: "muted" },
                `Since this page was opened at ${clock(source.openedAt)}.${source.may("GET /v1/audit") ? " The audit goes further back." : ""}`,
              ),
          shown.length === 0 ? empty("Nothing has happened.") : lines(source, shown),
        ),
        source.may("GET /v1/audit") ? section("Audit", auditPart(trail, problem)) : null,
      ];
    },
  };
}

function lines(source, shown) {
  const when = source.isRecorded ? moment : clock;
  const newest = shown.slice(-MOST_LINES).reverse();
  return h(
    "div",
    { class: "scroll long", tabindex: "0", role: "group", "aria-label": "events, the newest first" },
    stackedTable({
      label: `${counted(newest.length, "event")}, the newest first`,
      titles: ["Time", "Kind", "What"],
      kind: "told",
      rows: newest.map((event) => ({
        key: event.id,
        cells: [h("span", { class: "time" }, when(event.time)), badge(KINDS[event.event] ?? event.event), what(event)],
      })),
    }),
  );
}

function what(event) {
  const job = jobOf(event);
  return job === null ? sentence(event) : [jobLink(job), sentence(event).slice(job.length)];
}

function auditPart(trail, problem) {
  if (problem !== null) return empty(problem);
  if (trail === null) return empty("Asking the controller.");
  if (trail.records.length === 0) return empty("Nobody has changed anything yet.");
  return h(
    "div",
    { class: "scroll long", tabindex: "0", role: "group", "aria-label": "audit, the newest first" },
    stackedTable({
      label: "records of the audit",
      titles: ["Time", "Who", "From", "What", "Outcome", "Change"],
      rows: [...trail.records].reverse().map((one) => ({
        key: one.number,
        cells: [
          h("span", { class: "time" }, clock(one.time)),
          `${one.who} (${one.role})`,
          one.address ?? "–",
          h("span", { class: "path" }, one.path ? `${one.action.split(" ")[0]} ${one.path}` : one.action),
          [badge(one.outcome, OUTCOMES[one.outcome]), one.detail ? ` ${one.detail}` : null],
          change(one),
        ],
      })),
    }),
  );
}

function change(one) {
  if (one.before === null && one.after === null) return "–";
  return h(
    "details",
    null,
    h("summary", null, "before and after"),
    h("pre", null, `${JSON.stringify(one.before, null, 1)}\n→\n${JSON.stringify(one.after, null, 1)}`),
  );
}
