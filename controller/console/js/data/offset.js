/** How far the controller's clock is from this machine's, by the times of events. Times are arguments. */

/** Forget what events have shown after so many seconds, because somebody may set the controller's clock back a little. */
const WINDOW_SECONDS = 60;
/** An event that is so many seconds older than the one before it shows that the clock was set back. */
const SET_BACK_SECONDS = 1;

/**
 * An event comes later than it happens, so the largest difference is the nearest one. It is that of the last one to two
 * windows; events that are sent again after a break are old, and change it only where nothing newer is known.
 */
export class Offset {
  #last = -Infinity;
  #since = -Infinity;
  #before = -Infinity;
  #largest = -Infinity;

  /** What to add to this machine's time; 0 before the first event. */
  get seconds() {
    const largest = Math.max(this.#before, this.#largest);
    return largest === -Infinity ? 0 : largest;
  }

  /** An event has come: its time, and this machine's time, in seconds. */
  take(time, local) {
    if (time < this.#last - SET_BACK_SECONDS) this.#before = this.#largest = -Infinity;
    else if (local - this.#since >= WINDOW_SECONDS) {
      this.#before = this.#largest;
      this.#largest = -Infinity;
      this.#since = local;
    }
    this.#last = time;
    this.#largest = Math.max(this.#largest, time - local);
  }
}
