/** Small parts that several pages show. */

import { h } from "./dom.js";
import { className, counted, percent } from "./format.js";

/** A class with its colour and its number. */
export function classChip(service) {
  const isKnown = service !== null && service !== undefined;
  return h(
    "span",
    {
      class: `chip ${isKnown ? `class-${service}` : "class-none"}`,
      title: isKnown ? className(service) : "not in the plan",
    },
    isKnown ? String(service) : "–",
  );
}

/** A word with a colour of meaning: good, warn, bad or quiet. */
export function badge(text, kind = "quiet") {
  return h("span", { class: `badge ${kind}` }, text);
}

const STATES = { running: "good", waiting: "quiet", ended: "quiet", lost: "bad" };

/** The state of a job. */
export function jobState(job) {
  if (job.diverged) return badge("diverged", "bad");
  return badge(job.state ?? "unknown", STATES[job.state] ?? "quiet");
}

/** A bar for a share between 0 and 1; null: it is not known. */
export function bar(share, label, text = percent(share)) {
  if (share === null) return h("span", { class: "muted" }, "–");
  return h(
    "span",
    {
      class: "bar",
      role: "meter",
      "aria-label": label,
      "aria-valuemin": 0,
      "aria-valuemax": 100,
      "aria-valuenow": Math.round(share * 100),
    },
    h("span", { class: "bar-fill", style: { width: `${(share * 100).toFixed(1)}%` } }),
    h("span", { class: "bar-text" }, text),
  );
}

/** A bar of the load of a link by class, against its rate in bit/s; of all classes in one where only `total` is known. */
export function loadBar(load, bps, label, text, total = null) {
  const known = load ?? (total === null ? null : { all: total });
  if (known === null || !bps) return h("span", { class: "muted" }, "not counted");
  const shares = Object.entries(known)
    .filter(([, value]) => value > 0)
    .sort(([a], [b]) => a.localeCompare(b));
  const classes = shares.map(([name, value]) => `${className(name)} ${percent(value / bps)}`).join(", ");
  return h(
    "span",
    { class: "bar load", role: "img", "aria-label": `${label}: ${text}${classes && `; ${classes}`}` },
    shares.map(([name, value]) =>
      h("span", {
        key: name,
        class: `load-part class-${name}`,
        title: className(name),
        style: { width: `${Math.min(100, (value / bps) * 100).toFixed(2)}%` },
      }),
    ),
    h("span", { class: "bar-text" }, text),
  );
}

/** A fact: what it is, its value, and a sentence on it. */
export function fact(name, value, more = null, kind = "") {
  return h(
    "div",
    { class: `fact ${kind}` },
    h("dt", null, name),
    h("dd", null, value),
    more === null ? null : h("dd", { class: "more" }, more),
  );
}

/** A list of facts. */
export function facts(...items) {
  return h("dl", { class: "facts" }, items);
}

/** A part of a page with a heading. */
export function section(title, ...children) {
  const id = `section-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  return h(
    "section",
    { class: "panel" },
    h("h2", null, title),
    h("div", { class: "panel-body", "data-part": id }, children),
  );
}

/** What a page says where it has nothing to show. */
export function empty(...text) {
  return h("p", { class: "empty" }, text);
}

/** A link to a job's page. */
export function jobLink(id) {
  return h("a", { href: `#/jobs/${encodeURIComponent(id)}`, class: "job" }, id);
}

/** The colours of the classes with their numbers. */
export function legend(classes, withOther = true) {
  const all = [...Array(classes).keys()].map(String);
  return h(
    "ul",
    { class: "legend", "aria-label": "colours of the classes" },
    [...all, ...(withOther ? ["other"] : [])].map((name) =>
      h(
        "li",
        null,
        h("span", { class: `swatch class-${name}`, "aria-hidden": "true" }),
        name === "0" ? `${className(name)}, goes first` : className(name),
      ),
    ),
  );
}

/**
 * A table of few columns that a phone shows row by row, each cell below the other with its title. `rows` have a `key` and
 * `cells`; with `isHeaded` the first one names the row. Roles are said outright, because a browser forgets those of a
 * table that is laid out otherwise.
 */
export function stackedTable({ label, titles, rows, kind = "", isHeaded = false }) {
  return h(
    "table",
    { class: `plain stacked ${kind}`, role: "table", "aria-label": label },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        titles.map((title) => h("th", { scope: "col", role: "columnheader" }, title)),
      ),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      rows.map(({ key, cells }) =>
        h(
          "tr",
          { key, role: "row" },
          cells.map((cell, i) =>
            h(
              isHeaded && i === 0 ? "th" : "td",
              { role: isHeaded && i === 0 ? "rowheader" : "cell", "data-title": titles[i] },
              h("span", null, cell),
            ),
          ),
        ),
      ),
    ),
  );
}

/** Problems as a list. */
export function problems(list) {
  if (list.length === 0) return h("p", { class: "good-news" }, "No problems.");
  return h(
    "ul",
    { class: "problems", "aria-label": counted(list.length, "problem") },
    list.map((problem) => {
      const [what, ...cause] = problem.split(": ");
      return h("li", null, h("strong", null, what), cause.length > 0 ? `: ${cause.join(": ")}` : null);
    }),
  );
}
