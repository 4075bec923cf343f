/** The order as bands, and what another policy would make of it. */

import { compared, overBound } from "../data/select.js";
import { h } from "../ui/dom.js";
import { clock, counted, duration, moment, percent } from "../ui/format.js";
import { classChip, empty, fact, facts, jobLink, legend, section } from "../ui/parts.js";
import { classesOf } from "./overview.js";

const MOST_BANDS = 100;
const MOST_IN_BAND = 40;
const MARKS = {
  earlier: ["↑", "goes earlier"],
  later: ["↓", "goes later"],
  same: ["", "same place"],
  new: ["", "not in the other plan"],
};

export const title = "Plan";

export function makePage(redraw) {
  let other = null;
  let problem = null;
  let madeAt = null;

  async function compare(source, policy) {
    [other, problem] = [null, null];
    if (policy !== "") {
      try {
        other = await source.api.get(`/v1/plan?policy=${encodeURIComponent(policy)}`);
        madeAt = clock(source.now);
      } catch (error) {
        problem = error.message;
      }
    }
    redraw();
  }

  return {
    wants: () => [],
    render: (source) => {
      const { plan } = source.state;
      if (plan === null) return empty("There is no plan yet.");
      return [
        h(
          "p",
          { class: "muted" },
          "The order, first served first. Each line is a band: jobs to which the policy gives the same place. The number is the class in which the network serves a job; there are fewer classes than places, so jobs that do not meet share one.",
        ),
        source.may("GET /v1/plan") ? chooser(source, compare, other) : null,
        problem && h("p", { class: "bad-news", role: "alert" }, problem),
        h(
          "div",
          { class: other === null ? "" : "beside" },
          column(source, plan, other, "In force"),
          other === null ? null : column(source, other, plan, "Dry run, not applied"),
        ),
        other === null
          ? null
          : h(
              "p",
              { class: "muted" },
              `The dry run is of ${madeAt}. ↑ marks a job that has fewer jobs before it at its ports than in the plan beside it, and ↓ one that has more. A job keeps its class where the order allows it, so compare numbers of classes within one plan only.`,
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
      ? plan.order.map((band) => band.map((job) => ({ job, service: plan.classes[job], move: "same" })))
      : compared(plan, other, source.state);
  const moved = bands.flat().filter((one) => one.move !== "same").length;
  const when = source.isRecorded ? moment(source.state.planSince) : clock(source.state.planSince);
  return section(
    `${name}: ${plan.policy}`,
    facts(
      isInForce
        ? fact("Number", plan.epoch === null ? "–" : String(plan.epoch), `since ${when}`)
        : fact("Moves", counted(moved, "job"), "have more or fewer jobs before them"),
      fact(
        "Jobs wait in the mean",
        duration(plan.objective_seconds),
        over === null ? null : `${percent(over - 1, 1)} above the lower bound of ${duration(plan.lower_bound_seconds)}`,
      ),
      fact(
        "Pairs not kept apart",
        String(plan.inversions ?? 0),
        "jobs that meet, but share a class for want of classes",
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
              band.length === 1 ? h("span", { class: "reason" }, plan.reasons?.[band[0].job] ?? null) : null,
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
    { key: one.job, class: `place ${one.move}`, title: plan.reasons?.[one.job] ?? null },
    classChip(one.service),
    jobLink(one.job),
    mark &&
      h("span", { class: "mark" }, h("span", { "aria-hidden": "true" }, mark), h("span", { class: "hidden" }, words)),
  );
}
