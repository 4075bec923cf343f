/** What is around each page: the menu, the state of the connection, and the choice of recorded runs. */

import { h } from "./dom.js";
import { clock, counted, zone } from "./format.js";
import { badge } from "./parts.js";

/** Returns the whole page. `content` are the columns: one, or one for each recorded run. */
export function shell({ sources, menu, path, heading, content, timebar, chooser, theme, onTheme }) {
  const source = sources[0];
  return [
    h(
      "header",
      { class: "top" },
      h(
        "a",
        { class: "brand", href: "#/" },
        h("img", { src: "console/icons/trainyard.svg", alt: "", width: 28, height: 28 }),
        "Trainyard",
      ),
      h("div", { class: "signs" }, source.isRecorded ? chooser : signs(source)),
      h("button", { type: "button", class: "quiet-button", on: { click: onTheme } }, `Theme: ${theme}`),
    ),
    h(
      "nav",
      { class: "menu", "aria-label": "pages" },
      h(
        "ul",
        null,
        menu.map((entry) =>
          h(
            "li",
            { key: entry.path },
            h("a", { href: `#/${entry.path}`, "aria-current": entry.path === path ? "page" : null }, entry.title),
          ),
        ),
      ),
    ),
    h(
      "main",
      { id: "main", tabindex: "-1" },
      h("h1", null, heading),
      sources.map(connection),
      content.length === 1
        ? content[0]
        : h(
            "div",
            { class: "side-by-side" },
            content.map((column, i) =>
              h(
                "div",
                { key: i, class: "run", role: "group", "aria-label": sources[i].title },
                h("p", { class: "run-title" }, sources[i].title),
                column,
              ),
            ),
          ),
      source.isRecorded ? null : h("p", { class: "muted zone" }, `Times of day are in ${zone()}.`),
    ),
    timebar,
  ];
}

function signs({ state }) {
  const { plan, status, problems, caller } = state;
  return [
    plan && badge(plan.policy),
    status?.paused
      ? badge("paused", "warn")
      : status !== null && status.enforce.length === 0
        ? badge("observing")
        : null,
    problems.length > 0
      ? h("a", { class: "badge warn", href: "#/problems" }, counted(problems.length, "problem"))
      : null,
    caller === null
      ? null
      : h("span", { class: "muted" }, ["anybody", caller.role].includes(caller.name) ? caller.role : `${caller.name}, ${caller.role}`),
  ];
}

function connection(source) {
  if (source.connection.isOpen) return null;
  const text = source.isRecorded
    ? `The recorded run cannot be read: ${source.connection.problem}. Does trainyard console still run?`
    : connecting(source);
  // The first try is no news.
  const isNew = !source.isRecorded && source.connection.problem === null;
  return h("p", { class: isNew ? "muted" : "bad-news", role: "status" }, text);
}

function connecting(source) {
  return source.connection.problem === null
    ? "Connecting."
    : `No connection since ${clock(source.connection.since)}: ${source.connection.problem}. What you see is from before. Trying again.`;
}
