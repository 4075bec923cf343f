/** Which jobs of a plan wait less or longer than in another plan. All functions are pure. */

import { own } from "./own.js";
import { secondsOfWait } from "./waits.js";

/** A wait is another one only if it differs by more than these seconds, and by more than this share. */
const [SAME_SECONDS, SAME_SHARE] = [0.05, 0.02];

/** Returns whether two waits in seconds differ. */
export function differ(one, other) {
  return Math.abs(one - other) > Math.max(SAME_SECONDS, SAME_SHARE * Math.min(one, other));
}

/**
 * Returns the jobs of a plan by band, and whether each waits less or longer than in another plan, at most, for the jobs
 * before it and those that share with it. Neither classes nor the number of jobs before it say that: a job keeps its
 * class where the order allows it, and who shares a port waits there, too. Both plans have `waits`.
 */
export function compared(plan, other) {
  return plan.order.map((band) =>
    band.map((job) => {
      const [here, there] = [secondsIn(plan, job), secondsIn(other, job)];
      const isNew = !Object.hasOwn(other.classes, job);
      const move = isNew ? "new" : !differ(here, there) ? "same" : here < there ? "less" : "longer";
      return { job, service: own(plan.classes, job), move };
    }),
  );
}

/** Returns how long a job waits in a plan at most. A job without traffic waits for nobody. */
function secondsIn(plan, job) {
  const wait = own(plan.waits, job);
  return wait === undefined ? 0 : secondsOfWait(wait);
}
