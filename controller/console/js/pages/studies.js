/** Hyper-parameter studies: each stage (a rung) with its trials, the best metric first. */

import { nextTarget, share, studies } from "../data/select.js";
import { h } from "../ui/dom.js";
import { counted, number } from "../ui/format.js";
import { badge, bar, classChip, empty, jobLink, jobState, section } from "../ui/parts.js";
import { sparkline } from "../ui/spark.js";

const MOST_TRIALS = 50;

export const title = "Studies";

export function makePage() {
  return {
    wants: () => [],
    render: ({ state }) => {
      const all = studies(state);
      if (all.length === 0)
        return empty("No job belongs to a stage. Optuna and Ray Tune register stages by their callbacks.");
      return all.map((stage) =>
        section(
          stage.id,
          h(
            "p",
            null,
            badge(stage.state, stage.state === "running" ? "good" : "quiet"),
            ` ${counted(stage.jobs.length, "trial")}`,
          ),
          trials(state, stage),
        ),
      );
    },
  };
}

function trials(state, stage) {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "plain", "aria-label": `trials of ${stage.id}` },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Rank", "Trial", "Class", "State", "Metric", "Progress"].map((text) => h("th", { scope: "col" }, text)),
        ),
      ),
      h(
        "tbody",
        null,
        stage.jobs
          .slice(0, MOST_TRIALS)
          .map((job, i) =>
            h(
              "tr",
              { key: job.id },
              h("td", null, typeof job.last_metric === "number" ? String(i + 1) : "–"),
              h("th", { scope: "row" }, jobLink(job.id)),
              h("td", null, classChip(job.service_class)),
              h("td", null, jobState(job)),
              h(
                "td",
                null,
                h(
                  "span",
                  { class: "metric" },
                  sparkline(state.lines.get(job.id) ?? [], nextTarget(job), job.spec?.metric?.name ?? "metric"),
                  h("span", null, number(job.last_metric)),
                ),
              ),
              h("td", null, bar(share(job), `progress of ${job.id}`)),
            ),
          ),
      ),
    ),
    stage.jobs.length > MOST_TRIALS
      ? h("p", { class: "muted" }, `and ${counted(stage.jobs.length - MOST_TRIALS, "more trial")}`)
      : null,
  );
}
