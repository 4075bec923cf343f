/** A table that sorts and filters, and draws only the rows that are on the screen. */

import { h } from "./dom.js";
import { compareNames, count } from "./format.js";
import { empty } from "./parts.js";

const ROW_HEIGHT = 40;
const SPARE_ROWS = 8;
const DRAW_ALL = 60;

/**
 * Makes a table. `columns` have `name`, `title`, `cell(row)` and perhaps `sort(row)` (a number or a text), `help` and
 * `wide` (false: it is left out where the table is narrow; "screen": also where it is not very wide; "phone": it is smaller
 * on a phone). `key(row)` identifies a row. `text(row)` is what a filter looks at.
 */
export function makeTable({ label, columns, key, text, sortBy, descending = false, redraw }) {
  const view = { sortBy, descending, filter: "", top: 0, height: 800 };

  const byName = new Map(columns.map((column) => [column.name, column]));

  let last = { rows: null, stamp: null, arranged: null };

  /** Returns the rows that are wanted in their order; those of the last time where nothing differs. */
  function arranged(rows) {
    const stamp = `${view.sortBy} ${view.descending} ${view.filter}`;
    if (last.rows !== rows || last.stamp !== stamp) last = { rows, stamp, arranged: arrange(rows) };
    return last.arranged;
  }

  function arrange(rows) {
    const wanted = view.filter.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const kept =
      wanted.length === 0
        ? [...rows]
        : rows.filter((row) => wanted.every((word) => text(row).toLowerCase().includes(word)));
    const value = byName.get(view.sortBy)?.sort;
    if (value === undefined) return kept;
    const sign = view.descending ? -1 : 1;
    return kept
      .map((row) => [value(row), row])
      .sort(([a], [b]) => order(a, b, sign))
      .map(([, row]) => row);
  }

  function header(column) {
    const isSorted = view.sortBy === column.name;
    const sort = () => {
      view.descending = isSorted ? !view.descending : false;
      view.sortBy = column.name;
      redraw();
    };
    const arrow = isSorted ? (view.descending ? " ▾" : " ▴") : "";
    return h(
      "th",
      {
        key: column.name,
        scope: "col",
        class: widthClass(column),
        title: column.help ?? null,
        "aria-sort": isSorted ? (view.descending ? "descending" : "ascending") : null,
      },
      column.sort === undefined
        ? column.title
        : h(
            "button",
            { class: "sort", type: "button", on: { click: sort } },
            column.title,
            h("span", { "aria-hidden": "true" }, arrow),
          ),
    );
  }

  function watch(scroller) {
    if (view.height !== scroller.clientHeight && scroller.clientHeight > 0) view.height = scroller.clientHeight;
  }

  return function table(rows, { filters = [] } = {}) {
    const all = arranged(rows);
    const isShort = all.length <= DRAW_ALL;
    const from = isShort ? 0 : Math.max(0, Math.floor(view.top / ROW_HEIGHT) - SPARE_ROWS);
    const to = isShort
      ? all.length
      : Math.min(all.length, Math.ceil((view.top + view.height) / ROW_HEIGHT) + SPARE_ROWS);
    const gap = (key, lines) =>
      lines > 0
        ? h(
            "tr",
            { key, class: "gap", "aria-hidden": "true" },
            h("td", { colspan: columns.length, style: { height: `${lines * ROW_HEIGHT}px` } }),
          )
        : null;
    const scrolled = (event) => {
      const top = event.currentTarget.scrollTop;
      if (Math.abs(top - view.top) < ROW_HEIGHT * (SPARE_ROWS / 2)) return;
      view.top = top;
      watch(event.currentTarget);
      redraw();
    };
    return h(
      "div",
      { class: "table" },
      h(
        "div",
        { class: "tools" },
        h("input", {
          type: "search",
          "aria-label": `filter ${label}`,
          placeholder: "Filter",
          value: view.filter,
          on: { input: (event) => ((view.filter = event.target.value), redraw()) },
        }),
        filters,
        h(
          "span",
          { class: "muted", role: "status" },
          all.length === rows.length ? count(rows.length) : `${count(all.length)} of ${count(rows.length)}`,
        ),
      ),
      h(
        "div",
        {
          class: isShort ? "scroll" : "scroll long",
          tabindex: isShort ? null : "0",
          role: isShort ? null : "group",
          "aria-label": isShort ? null : label,
          on: isShort ? {} : { scroll: scrolled },
        },
        h(
          "table",
          { "aria-label": label, "aria-rowcount": all.length + 1 },
          h("thead", null, h("tr", null, columns.map(header))),
          h(
            "tbody",
            null,
            gap(" before", from),
            all.slice(from, to).map((row, i) =>
              h(
                "tr",
                { key: key(row), "aria-rowindex": from + i + 2 },
                columns.map((column, at) =>
                  h(
                    at === 0 ? "th" : "td",
                    {
                      scope: at === 0 ? "row" : null,
                      class: widthClass(column),
                      "data-title": column.title,
                    },
                    column.cell(row),
                  ),
                ),
              ),
            ),
            gap(" after", all.length - to),
          ),
        ),
        all.length === 0 ? empty(rows.length === 0 ? "There are none." : "None of them fits the filter.") : null,
      ),
    );
  };
}

function widthClass({ wide }) {
  if (wide === "screen") return "wide wide-screen";
  return wide === false ? "wide" : wide === "phone" ? "wide-phone" : null;
}

/** Compares two values; what is not known comes last. */
function order(a, b, sign) {
  const [leftMissing, rightMissing] = [a, b].map(
    (value) => value === null || value === undefined || Number.isNaN(value),
  );
  if (leftMissing || rightMissing) return leftMissing - rightMissing;
  return sign * (typeof a === "string" ? compareNames(a, b) : a - b);
}
