/** The order as bands, and what another policy would make of it. */

import { own } from "../data/own.js";
import { compared } from "../data/moves.js";
import { overBound } from "../data/select.js";
import { h } from "../ui/dom.js";
import { clock, count, counted, duration, moment, percent } from "../ui/format.js";
import { classChip, empty, fact, facts, jobLink, legend, section } from "../ui/parts.js";
import { classesOf } from "./overview.js";

const MOST_BANDS = 100;
const MOST_IN_BAND = 40;
const MARKS = {
  less: ["↑", "waits less"],
  longer: ["↓", "waits longer"],
  same: ["", "same place"],
  new: ["", "not in the other plan"],
};

export const title = "Plan";

export function makePage(redraw) {
  let other = null;
  let problem = null;
  let madeAt = null;

  async function compare(source, policy) {
    problem = null;
    if (policy === "") other = null;
    if (policy !== "") {
      try {
        other = await source.api.get(`/v1/plan?policy=${encodeURIComponent(policy)}`);
        madeAt = clock(source.now);
      } catch (error) {
        [other, problem] = [null, error.message];
      }
    }
    redraw();
  }

  return {
    wants: () => [],
    render: (source) => {
      const { plan } = source.state;
      if (plan === null) return empty("There is no plan yet.");
      // The two are of what was known at one moment, so that only the policies differ.
      const base = other?.in_force ?? plan;
      return [
        h(
          "p",
          { class: "muted" },
          "The order, first served first. Each line is a band: jobs to which the policy gives the same place. The number is the job's class: at a port, a lower class goes first. A job keeps its class as long as that serves the order, so a lower one may be empty.",
        ),
        source.may("GET /v1/plan") ? chooser(source, compare, other) : null,
        problem && h("p", { class: "bad-news", role: "alert" }, problem),
        h(
          "div",
          { class: other === null ? "" : "beside" },
          column(source, base, other, "In force"),
          other === null ? null : column(source, other, base, "Dry run, not applied"),
        ),
        other === null
          ? null
          : h(
              "p",
              { class: "muted" },
              `The dry run is of ${madeAt}, and so is the plan in force beside it (plan ${base.epoch}). `,
              plan.epoch === base.epoch ? null : `Now plan ${plan.epoch} is in force. `,
              plan.epoch === base.epoch
                ? null
                : h("button", { type: "button", on: { click: () => compare(source, other.policy) } }, "Compare again"),
              " ↑ marks a job that waits less than in the plan beside it, and ↓ one that waits longer, for the jobs before it and those that share its ports. Compare numbers of classes within one plan only.",
            ),
        legend(classesOf(source.state), false),
      ];
    },
  };
}

function chooser(source, compare, other) {
  const policies = (source.state.status?.policies ?? []).filter((name) => name !== source.state.plan.policy);
  return h(
    "div",
    { class: "row" },
    h(
      "div",
      { class: "field" },
      h("label", { for: "other-policy" }, "Compare with the plan of"),
      h(
        "select",
        {
          id: "other-policy",
          value: other?.policy ?? "",
          on: { change: (event) => compare(source, event.target.value) },
        },
        h("option", { value: "" }, "no other policy"),
        policies.map((name) => h("option", { value: name }, name)),
      ),
    ),
  );
}

function column(source, plan, other, name) {
  const over = overBound(plan);
  const isInForce = name === "In force";
  const bands =
    other === null
      ? plan.order.map((band) => band.map((job) => ({ job, service: own(plan.classes, job), move: "same" })))
      : compared(plan, other);
  const moved = bands.flat().filter((one) => one.move !== "same").length;
  const when = source.isRecorded ? moment(source.state.planSince) : clock(source.state.planSince);
  return section(
    `${name}: ${plan.policy}`,
    facts(
      isInForce
        ? fact("Number", plan.epoch === null ? "–" : String(plan.epoch), `since ${when}`)
        : fact("Moves", counted(moved, "job"), "wait less or longer"),
      fact(
        "Jobs are served after",
        duration(plan.objective_seconds),
        `at most, in the mean${over === null ? "" : `; ${percent(over - 1, 1)} more than ${duration(plan.lower_bound_seconds)}, which no order gets below`}`,
      ),
      fact(
        "Pairs out of order",
        count(plan.inversions ?? 0),
        "jobs of two bands that meet, but share a class because there are too few classes; jobs of one band are meant to share one",
      ),
    ),
    bands.length === 0
      ? empty("No job is in the plan.")
      : h(
          "ol",
          { class: "bands" },
          bands.slice(0, MOST_BANDS).map((band, i) =>
            h(
              "li",
              { key: i },
              band.slice(0, MOST_IN_BAND).map((one) => entry(plan, one)),
              band.length === 1 ? h("span", { class: "reason" }, own(plan.reasons, band[0].job) ?? null) : null,
              band.length > MOST_IN_BAND ? ` and ${band.length - MOST_IN_BAND} more` : null,
            ),
          ),
        ),
    bands.length > MOST_BANDS
      ? h("p", { class: "muted" }, `and ${counted(bands.length - MOST_BANDS, "more band")}`)
      : null,
    isInForce && plan.errors?.length > 0
      ? h(
          "ul",
          { class: "problems" },
          plan.errors.map((error) => h("li", null, error)),
        )
      : null,
  );
}

function entry(plan, one) {
  const [mark, words] = MARKS[one.move];
  return h(
    "span",
    { key: one.job, class: `place ${one.move}`, title: own(plan.reasons, one.job) ?? null },
    classChip(one.service),
    jobLink(one.job),
    mark &&
      h("span", { class: "mark" }, h("span", { "aria-hidden": "true" }, mark), h("span", { class: "hidden" }, words)),
  );
}
