/** The settings that can change at run time. What would change is shown before it does. */

import { compared } from "../data/moves.js";
import { confirm } from "../ui/dialog.js";
import { h } from "../ui/dom.js";
import { clock, counted, duration } from "../ui/format.js";
import { badge, empty, fact, facts, section } from "../ui/parts.js";

const MOST_MOVES = 12;

export const title = "Settings";

export function makePage(redraw) {
  let said = null;
  let draft = {};

  function say(text, kind) {
    said = { text, kind };
    redraw();
  }

  async function change(source, wanted, heading, content, yes) {
    if (!(await confirm(heading, content, yes))) return;
    try {
      source.state.settings = await source.api.send("PATCH", "/v1/settings", wanted);
      draft = {};
      say("Done.", "good-news");
    } catch (error) {
      say(error.message, "bad-news");
    }
  }

  async function changePolicy(source, event) {
    event.preventDefault();
    const { settings, plan } = source.state;
    const policy = draft.policy ?? settings.policy;
    const period = Number(draft.period ?? settings.period_seconds);
    const wanted = {};
    if (policy !== settings.policy) wanted.policy = policy;
    if (period !== settings.period_seconds) wanted.period_seconds = period;
    if (Object.keys(wanted).length === 0) return say("Nothing would change.", "muted");
    try {
      const other =
        wanted.policy === undefined || plan === null
          ? null
          : await source.api.get(`/v1/plan?policy=${encodeURIComponent(policy)}`);
      const moves = other === null ? null : movesOf(other, other.in_force ?? plan);
      await change(source, wanted, "Change the settings?", preview(settings, wanted, moves), "Change");
    } catch (error) {
      say(error.message, "bad-news");
    }
  }

  return {
    wants: () => [],
    render: (source) => {
      const { settings, status } = source.state;
      if (settings === null) return empty("The settings are not shown to your role.");
      const mayChange = source.may("PATCH /v1/settings");
      return [
        said && h("p", { class: said.kind, role: "status" }, said.text),
        section("In force", inForce(settings, status)),
        mayChange ? section("Change", changeForm(source, draft, redraw, changePolicy)) : null,
        mayChange ? section("Off switch", pausePart(source, settings, change)) : null,
      ];
    },
  };
}

function inForce(settings, status) {
  return facts(
    fact(
      "Policy",
      settings.policy ?? "–",
      Object.entries(settings.policy_options ?? {})
        .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
        .join(", ") || null,
    ),
    fact("Period", duration(settings.period_seconds), "the longest time between two plans"),
    fact(
      "Enforcement",
      settings.pause
        ? badge("paused", "warn")
        : status !== null && status.enforce.length === 0
          ? badge("observing")
          : status?.not_ready?.length > 0
            ? badge("on, but not ready", "warn")
            : badge("on", "good"),
      status === null
        ? null
        : status.enforce.length === 0
          ? "enforce: [] in the settings file"
          : [`at: ${status.enforce.join(", ")}`, ...(status.not_ready ?? [])].join("; "),
    ),
    status?.settings_sha256
      ? fact(
          "Settings file",
          h("code", null, status.settings_sha256.slice(0, 12)),
          `read ${clock(status.settings_loaded_at)}`,
        )
      : null,
  );
}

function changeForm(source, draft, redraw, onSubmit) {
  const { settings, status } = source.state;
  const note = (name) => (event) => {
    draft[name] = event.target.value;
    redraw();
  };
  return h(
    "form",
    { class: "row", on: { submit: (event) => onSubmit(source, event) } },
    h(
      "div",
      { class: "field" },
      h("label", { for: "set-policy" }, "Policy"),
      h(
        "select",
        { id: "set-policy", value: draft.policy ?? settings.policy, on: { change: note("policy") } },
        (status?.policies ?? [settings.policy]).map((name) => h("option", { value: name }, name)),
      ),
    ),
    h(
      "div",
      { class: "field" },
      h("label", { for: "set-period" }, "Period in seconds"),
      h("input", {
        id: "set-period",
        type: "number",
        min: "0.1",
        max: "3600",
        step: "any",
        required: true,
        value: String(draft.period ?? settings.period_seconds),
        on: { input: note("period") },
      }),
    ),
    h("button", { class: "main" }, "Show what would change"),
  );
}

/** Returns the jobs that would wait less or longer, each with which of the two. */
function movesOf(other, plan) {
  return compared(other, plan)
    .flat()
    .filter(({ move }) => move === "less" || move === "longer");
}

/** Says what would change. `moves` of null: the policy stays. */
function preview(settings, wanted, moves) {
  const rows = [
    wanted.policy === undefined ? null : h("li", null, `policy: ${settings.policy} → ${wanted.policy}`),
    wanted.period_seconds === undefined
      ? null
      : h("li", null, `period: ${duration(settings.period_seconds)} → ${duration(wanted.period_seconds)}`),
  ];
  const isOther = wanted.policy !== undefined && Object.keys(settings.policy_options ?? {}).length > 0;
  return [
    h("ul", null, rows),
    isOther
      ? h("p", null, `The options of ${settings.policy} are not kept: ${wanted.policy} begins with its defaults.`)
      : null,
    moves === null ? null : moveList(moves),
  ];
}

function moveList(moves) {
  if (moves.length === 0) return h("p", null, "No job would wait less or longer now.");
  const more = moves.length - MOST_MOVES;
  return [
    h("p", null, `${counted(moves.length, "job")} would wait less or longer:`),
    h(
      "ul",
      null,
      moves.slice(0, MOST_MOVES).map(({ job, move }) => h("li", null, `${job} waits ${move}`)),
      more > 0 ? h("li", null, `and ${more} more`) : null,
    ),
  ];
}

function pausePart(source, settings, change) {
  const ask = () =>
    settings.pause
      ? change(
          source,
          { pause: false },
          "Resume?",
          h("p", null, "The order of the present plan is enforced again at once."),
          "Resume",
        )
      : change(
          source,
          { pause: true },
          "Pause?",
          h(
            "p",
            null,
            "Within two seconds nothing is enforced: gates are closed, marks and NIC trees are gone. Jobs and plans go on. It lasts over restarts until somebody resumes.",
          ),
          "Pause",
        );
  return [
    h(
      "p",
      null,
      settings.pause
        ? "An operator has paused. Plans are made, and nothing is enforced."
        : "Pause takes all priorities out of the network. Packets still flow.",
    ),
    h(
      "button",
      { class: settings.pause ? "main" : "danger", type: "button", on: { click: ask } },
      settings.pause ? "Resume" : "Pause",
    ),
  ];
}
