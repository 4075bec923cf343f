/** What another weight, target or policy would do for a job. Nothing is applied. */

import { h } from "../ui/dom.js";
import { counted, duration, number } from "../ui/format.js";
import { classChip, section } from "../ui/parts.js";

const HEAVIER = [2, 4];
const SAME_SECONDS = 1;
const SAME_SHARE = 0.02;

export function makeWhatIf(id, redraw) {
  let result = null;
  let problem = null;
  let isAsking = false;

  async function submitted(source, event) {
    event.preventDefault();
    const wanted = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value !== ""));
    if (Object.keys(wanted).length === 0) {
      [result, problem] = [null, "Fill in a weight or a target, or choose a policy."];
      redraw();
      return;
    }
    await ask(source, wanted);
  }

  async function ask(source, wanted) {
    isAsking = true;
    redraw();
    try {
      result = { wanted, explained: await source.explain(id, wanted) };
      problem = null;
    } catch (error) {
      [result, problem] = [null, error.message];
    }
    isAsking = false;
    redraw();
  }

  function field(name, label, props) {
    return h(
      "div",
      { class: "field" },
      h("label", { for: `if-${name}` }, label),
      h("input", { id: `if-${name}`, name, inputmode: "decimal", autocomplete: "off", ...props }),
    );
  }

  function render(source, job, explained) {
    if (source.isRecorded) return null;
    const policies = source.state.status?.policies ?? [];
    const weight = job.spec?.weight ?? 1;
    const form = h(
      "form",
      { class: "row", on: { submit: (event) => submitted(source, event) } },
      field("weight", "Weight: more counts more", { placeholder: number(weight) }),
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
      h("button", { class: "main", disabled: isAsking }, "Show what it would do"),
    );
    return section(
      "What would help",
      h(
        "p",
        null,
        HEAVIER.map((times) => [
          h(
            "button",
            {
              type: "button",
              disabled: isAsking,
              on: { click: () => ask(source, { weight: String(weight * times) }) },
            },
            `Try weight ${number(weight * times)}`,
          ),
          " ",
        ]),
        h("span", { class: "muted" }, "The controller plans again with the change, and applies nothing."),
      ),
      form,
      outcome(source, explained),
    );
  }

  function outcome(source, explained) {
    if (problem !== null) return h("p", { class: "bad-news", role: "alert" }, problem);
    if (result === null || explained === null) return null;
    const { wanted, explained: other } = result;
    const change = Object.entries(wanted)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
    const jobs = source.state.plan?.order.flat().length ?? null;
    return h(
      "div",
      { class: "outcome", role: "status" },
      h(
        "p",
        null,
        `With ${change}: `,
        classChip(explained.service_class),
        " → ",
        classChip(other.service_class),
        verdict(explained, other, jobs),
      ),
      h("p", { class: "muted" }, other.reason),
      "weight" in wanted || "target" in wanted
        ? h(
            "p",
            { class: "muted" },
            `To have it so, register the job again with ${change.replace(/, policy .*/, "")}: in its job file, or with PUT /v1/jobs/${id}. What it gains, others wait for.`,
          )
        : null,
    );
  }

  return { render };
}

function waits(explained) {
  return Math.max(0, ...(explained.ports ?? []).map((port) => port.seconds_before));
}

function verdict(now, other, jobs) {
  const [before, after] = [waits(now), waits(other)];
  const change = after - before;
  const isSame = Math.abs(change) <= Math.max(SAME_SECONDS, SAME_SHARE * before);
  const how = isSame ? "as now" : change < 0 ? "less" : "longer";
  const place = `${counted(other.jobs_before.length, "job")} of all ${jobs ?? ""} would go first, now ${now.jobs_before.length}`;
  return ` It would wait ${how}: ${duration(after)} in the place of ${duration(before)} are before it at the port where most is before it. ${place}.`;
}
