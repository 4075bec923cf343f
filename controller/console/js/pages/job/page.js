/** One job: why it waits, what is known of it, and what would help. */

import { isLive, liveJobs } from "../../data/select.js";
import { empty, section } from "../../ui/parts.js";
import { classesOverTime } from "./classes.js";
import { header } from "./header.js";
import { known } from "./known.js";
import { metricChart } from "./metric.js";
import { byPort } from "./ports.js";
import { makeWhatIf } from "./what_if.js";
import { why } from "./why.js";

const REFRESH_SECONDS = 5;

export function makePage(redraw, [id]) {
  let explained = null;
  let problem = null;
  let asked = {};
  let [sent, shown] = [0, 0];
  const whatIf = makeWhatIf(id, redraw);

  /**
   * Asks again when the plan or the number of jobs has changed, or after some seconds. What is tried is asked for in the
   * same call, so that the whole page is of one plan, and only after some seconds, so that it can be read.
   */
  function ask(source, job) {
    const tried = whatIf.tried();
    const step = source.isRecorded ? Math.floor((source.now ?? 0) * 2) : Math.floor(source.now / REFRESH_SECONDS);
    const stamp = tried === null ? `${source.state.plan?.epoch} ${liveJobs(source.state).length} ${step}` : step;
    if (asked.stamp === stamp && asked.tried === tried) return;
    asked = { stamp, tried };
    sent += 1;
    const place = sent;
    source.explain(id, whatIf.query(job)).then(
      (document) => take(place, () => answered(document, tried)),
      (error) => take(place, () => failed(error, tried)),
    );
  }

  /** Shows an answer, unless a later question has been answered before. */
  function take(place, show) {
    if (place < shown) return;
    shown = place;
    show();
    redraw();
  }

  function answered(document, tried) {
    [explained, problem] = [document, null];
    whatIf.take(tried, document);
  }

  /** Shows that there is no answer. What cannot be tried is not asked for again. */
  function failed(error, tried) {
    if (tried !== null && error.status >= 400 && error.status < 500) whatIf.refuse(tried, error.message);
    else [explained, problem] = [null, error.message];
  }

  return {
    title: `Job ${id}`,
    wants: ({ jobs }) => (jobs.has(id) ? ["network", `job:${id}`, `history:jobs=${encodeURIComponent(id)}&step=15&ports=`] : []),
    render: (source) => {
      const job = source.state.jobs.get(id);
      if (job === undefined)
        return empty(source.connection.isOpen ? `There is no job ${id} now.` : "Waiting for the controller.");
      const isPlanned = isLive(job) && Number.isInteger(job.service_class);
      if (isPlanned) ask(source, job);
      return [
        header(source, job, explained),
        isPlanned
          ? why(source.state, job, explained, problem)
          : section(isLive(job) ? "Why it waits" : "It waits no more", empty(notPlanned(job))),
        isLive(job) && source.may("GET /v1/plan") ? whatIf.render(source, job) : null,
        isPlanned && problem === null ? byPort(source.state, explained) : null,
        known(job, explained),
        metricChart(source, job),
        classesOverTime(source, job),
      ];
    },
  };
}

function notPlanned(job) {
  return `The job is ${isLive(job) ? "" : `${job.state}: it is `}not in the plan.`;
}
