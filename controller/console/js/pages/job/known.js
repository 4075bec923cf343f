/** What is known of a job: what it declares, its family, and when it reaches its targets. */

import { isReached, TARGET_NAMES } from "../../data/select.js";
import { h } from "../../ui/dom.js";
import { clock, count, number } from "../../ui/format.js";
import { badge, fact, facts, section } from "../../ui/parts.js";

const FITTED = "by the curve through all reports; the next ones may move it";

/** Returns what is known of a job. `explained` may be null: then nobody has been asked yet. */
export function known(job, explained) {
  const targets = Object.entries(job.targets ?? {}).filter(([, one]) => typeof one.iteration === "number");
  return section(
    "What is known of it",
    facts(
      fact("Model", job.spec?.model ?? "–"),
      fact("Family", familyOf(job, explained), explained?.earlier_runs ?? null),
      fact("Weight", number(job.spec?.weight ?? null)),
      explained &&
        fact(
          job.spec?.unit === "epoch" ? "Epochs left" : "Iterations left",
          number(explained.iterations_left, 4),
          "as the policy expects",
        ),
      ...targets.map(([kind, one]) => targetFact(job, kind, one, explained?.reached_at?.[kind])),
    ),
    job.diverged ? h("p", null, badge("This run has diverged: it is not favoured any more.", "bad")) : null,
  );
}

/**
 * A target is reached, or it is expected: never both on one page. A share of convergence is one of the convergence that
 * is expected now, so its metric and iteration move with what the job reports.
 */
function targetFact(job, kind, one, reachedAt) {
  const name = TARGET_NAMES[kind] ?? kind;
  const unit = job.spec?.unit ?? "iteration";
  const metric = typeof one.metric === "number" ? `${job.spec?.metric?.name ?? "metric"} ${number(one.metric)}` : null;
  if (isReached(job, one)) {
    const when = typeof reachedAt === "number" && reachedAt > 1e8 ? `at ${clock(reachedAt)}` : null;
    const notes = [when, metric, kind === "target" ? null : FITTED].filter(Boolean);
    return fact(`Has reached ${name}`, `at ${unit} ${count(Math.ceil(one.iteration))}`, notes.join("; "));
  }
  const range =
    typeof one.low === "number" && typeof one.high === "number"
      ? `${unit} ${count(Math.round(one.low))} to ${count(Math.round(one.high))} with 80 %`
      : null;
  return fact(
    `Expected to reach ${name}`,
    `at about ${unit} ${count(Math.round(one.iteration))}`,
    [range, metric, kind === "target" ? null : FITTED].filter(Boolean).join("; ") || null,
  );
}

/** Returns the family of a job in words. An empty name says outright that it has none. */
function familyOf(job, explained) {
  return explained?.family || job.spec?.family || "none";
}
