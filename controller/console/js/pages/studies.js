/** Hyper-parameter studies: each stage (a rung) with its trials, the best metric first. */

import { nextTarget, share, studies } from "../data/select.js";
import { h } from "../ui/dom.js";
import { counted, number } from "../ui/format.js";
import { badge, bar, classChip, empty, jobLink, jobState, section, stackedTable } from "../ui/parts.js";
import { sparkline } from "../ui/spark.js";

/** So many stages are open at first, each with its best trials. A closed one draws nothing. */
const OPEN_STAGES = 5;
const BEST_TRIALS = 20;
const MOST_TRIALS = 200;

export const title = "Studies";

export function makePage(redraw) {
  const opened = new Map();
  const whole = new Set();

  /** Returns the part of a stage. People may open and close it, and see all of its trials. */
  function stagePart(state, stage, isOpen) {
    const most = whole.has(stage.id) ? MOST_TRIALS : BEST_TRIALS;
    const button = (text, change) =>
      h("button", { type: "button", class: "quiet-button", on: { click: () => (change(), redraw()) } }, text);
    return section(
      stage.id,
      h(
        "p",
        { class: "row" },
        badge(stage.state, stage.state === "running" ? "good" : "quiet"),
        ` ${counted(stage.jobs.length, "trial")}`,
        button(`${isOpen ? "Hide" : "Show"} the trials of ${stage.id}`, () => opened.set(stage.id, !isOpen)),
      ),
      isOpen ? trials(state, stage, most) : null,
      isOpen && stage.jobs.length > most
        ? most === MOST_TRIALS
          ? h("p", { class: "muted" }, `and ${counted(stage.jobs.length - most, "more trial")}: see Jobs`)
          : button(`Show ${counted(stage.jobs.length - most, "more trial")} of ${stage.id}`, () => whole.add(stage.id))
        : null,
    );
  }

  return {
    wants: () => [],
    render: ({ state }) => {
      const all = studies(state);
      if (all.length === 0)
        return empty(
          "A stage is a set of trials that a tuner compares before it goes on. No job belongs to one. Optuna and Ray Tune register stages by their callbacks.",
        );
      return [
        h("p", { class: "muted" }, "A stage is a set of trials that a tuner compares before it goes on (a rung)."),
        all.map((stage, i) => stagePart(state, stage, opened.get(stage.id) ?? i < OPEN_STAGES)),
      ];
    },
  };
}

function trials(state, stage, most) {
  return h(
    "div",
    { class: "scroll" },
    stackedTable({
      label: `trials of ${stage.id}`,
      titles: ["Rank", "Trial", "Class", "State", "Metric", "Progress"],
      rows: stage.jobs.slice(0, most).map((job, i) => ({
        key: job.id,
        cells: [
          typeof job.last_metric === "number" ? String(i + 1) : "–",
          jobLink(job.id),
          classChip(job.service_class),
          jobState(job),
          h(
            "span",
            { class: "metric" },
            sparkline(state.lines.get(job.id) ?? [], nextTarget(job), job.spec?.metric?.name ?? "metric"),
            h("span", null, number(job.last_metric)),
          ),
          bar(share(job), `progress of ${job.id}`),
        ],
      })),
    }),
  );
}
