/** Tries another weight, target or policy for a job. Nothing is applied. */

import { h } from "../../ui/dom.js";
import { clock, number } from "../../ui/format.js";
import { empty, section } from "../../ui/parts.js";
import { outcomes } from "./outcomes.js";

const HEAVIER = [2, 4];

/**
 * Returns what is tried for a job and how it is shown. The page asks for it with all else that it shows, so that nothing
 * on it is of another plan: `tried` is what is tried (null: nothing), `query` how the controller is asked.
 */
export function makeWhatIf(id, redraw) {
  let wanted = null;
  let problem = null;
  let result = null;
  let answers = 0;

  function submitted(event) {
    event.preventDefault();
    const filled = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value !== ""));
    const isEmpty = Object.keys(filled).length === 0;
    begin(isEmpty ? null : filled, isEmpty ? "Fill in a weight or a target, or choose a policy." : null);
  }

  function begin(what, why = null) {
    [wanted, problem, result, answers] = [what, why, null, 0];
    redraw();
  }

  return {
    tried: () => wanted,
    /** Several weights are beside what is in force, and so is one, here that of the job itself. */
    query(job) {
      if (wanted === null) return {};
      const { weight = String(job.spec?.weight ?? 1), weights = weight, ...others } = wanted;
      return { weights, ...others };
    },
    /** Takes the controller's answer to what was tried. */
    take(what, explained) {
      if (what === null || what !== wanted) return;
      result = explained;
      answers += 1;
    },
    /** Takes that the controller refuses what was tried. */
    refuse(what, why) {
      if (what === wanted) begin(null, why);
    },
    render(source, job) {
      if (source.isRecorded) return null;
      return section("What would help", usual(job, begin), form(source, job, submitted), outcome(source));
    },
  };

  function outcome(source) {
    if (problem !== null) return h("p", { class: "bad-news", role: "alert" }, problem);
    if (wanted === null) return null;
    if (result === null) return empty("Asking the controller.");
    return h(
      "div",
      // What is only renewed is not announced again.
      { class: "outcome", role: "status", "aria-live": answers > 1 ? "off" : "polite" },
      h(
        "p",
        { class: "muted" },
        `Of plan ${result.epoch}, made at ${clock(result.planned_at)}, as the answer above. Both are renewed every few seconds. `,
        h("button", { type: "button", on: { click: () => begin(null) } }, "Close"),
      ),
      outcomes(id, result.outcomes, source),
    );
  }
}

/** The tries that are most often asked for. */
function usual(job, begin) {
  const heavier = HEAVIER.map((times) => (job.spec?.weight ?? 1) * times);
  return h(
    "p",
    null,
    h(
      "button",
      { type: "button", on: { click: () => begin({ weights: heavier.join(",") }) } },
      `Try weights ${heavier.map((one) => number(one)).join(" and ")}`,
    ),
    " ",
    h("span", { class: "muted" }, "The controller plans again with the change, and applies nothing."),
  );
}

function form(source, job, submitted) {
  const policies = source.state.status?.policies ?? [];
  return h(
    "form",
    { class: "row", on: { submit: submitted } },
    field("weight", "Weight: more counts more", { placeholder: number(job.spec?.weight ?? 1) }),
    field("target", `Target: ${job.spec?.metric?.name ?? "metric"} that is enough`, {
      placeholder: job.spec?.target ? number(job.spec.target) : "none",
    }),
    h(
      "div",
      { class: "field" },
      h("label", { for: "if-policy" }, "Policy"),
      h(
        "select",
        { id: "if-policy", name: "policy" },
        h("option", { value: "" }, `as now (${source.state.plan?.policy ?? "–"})`),
        policies.map((policy) => h("option", { value: policy }, policy)),
      ),
    ),
    h("button", { class: "main" }, "Show what it would do"),
  );
}

function field(name, label, props) {
  return h(
    "div",
    { class: "field" },
    h("label", { for: `if-${name}` }, label),
    h("input", { id: `if-${name}`, name, inputmode: "decimal", autocomplete: "off", ...props }),
  );
}
