/** What another weight, target or policy would do for a job. Nothing is applied. */

import { h } from "../ui/dom.js";
import { counted, duration, number } from "../ui/format.js";
import { classChip, section } from "../ui/parts.js";

export function makeWhatIf(id, redraw) {
  let result = null;
  let problem = null;
  let isAsking = false;

  async function ask(source, event) {
    event.preventDefault();
    const wanted = Object.fromEntries([...new FormData(event.target)].filter(([, value]) => value !== ""));
    if (Object.keys(wanted).length === 0) return;
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
    const form = h(
      "form",
      { class: "row", on: { submit: (event) => ask(source, event) } },
      field("weight", "Weight", { placeholder: number(job.spec?.weight ?? 1) }),
      field("target", "Target", { placeholder: job.spec?.target ? number(job.spec.target) : "none" }),
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
      h("p", { class: "muted" }, "The controller plans again with the change, and applies nothing."),
      form,
      outcome(job, explained),
    );
  }

  function outcome(job, explained) {
    if (problem !== null) return h("p", { class: "bad-news", role: "alert" }, problem);
    if (result === null || explained === null) return null;
    const { wanted, explained: other } = result;
    const change = Object.entries(wanted)
      .map(([name, value]) => `${name} ${value}`)
      .join(", ");
    const [before, after] = [waits(explained), waits(other)];
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
        verdict(explained, other, before, after),
      ),
      h("p", { class: "muted" }, other.reason),
    );
  }

  return { render };
}

function waits(explained) {
  return Math.max(0, ...(explained.ports ?? []).map((port) => port.seconds_before));
}

function verdict(now, other, before, after) {
  const fewer = now.jobs_before.length - other.jobs_before.length;
  const jobs =
    fewer === 0
      ? "as many jobs are before it"
      : `${counted(Math.abs(fewer), fewer > 0 ? "fewer job is" : "more job is", fewer > 0 ? "fewer jobs are" : "more jobs are")} before it`;
  if (Math.abs(before - after) < 1e-9) return ` It would wait as now: ${jobs}.`;
  return ` It would wait ${after < before ? "less" : "longer"}: ${duration(after)} in the place of ${duration(before)} are before it at its busiest port, and ${jobs}.`;
}
