/** The bar below recorded runs: play, speed, and the moment. */

import { h } from "./dom.js";
import { moment } from "./format.js";

const SPEEDS = [0.5, 1, 2, 5, 10, 30];
const STEP_SECONDS = 1;
const FRAME_MS = 100;

export class TimeBar {
  #timer = null;
  #shownAt = 0;

  /** `seek(time)` shows a moment; while `isBehind()`, it is not shown yet. `seconds` is the length of the longest run. */
  constructor(seconds, seek, isBehind) {
    // A whole number of the slider's steps, or it could not be moved to the end.
    this.seconds = Math.ceil(seconds * 10) / 10;
    this.time = 0;
    this.speed = 2;
    this.isPlaying = false;
    this.seekTo = seek;
    this.isBehind = isBehind;
  }

  play() {
    if (this.time >= this.seconds) this.time = 0;
    this.isPlaying = true;
    this.#shownAt = performance.now();
    this.#timer ??= setInterval(() => this.#advance(), FRAME_MS);
    this.go(this.time);
  }

  pause() {
    this.isPlaying = false;
    clearInterval(this.#timer);
    this.#timer = null;
    this.go(this.time);
  }

  go(time) {
    this.time = Math.max(0, Math.min(time, this.seconds));
    this.seekTo(this.time);
  }

  #advance() {
    const now = performance.now();
    const passed = ((now - this.#shownAt) / 1000) * this.speed;
    this.#shownAt = now;
    if (this.isBehind()) return; // time stands still until what it shows is there
    this.go(this.time + passed);
    if (this.time >= this.seconds) this.pause();
  }

  render() {
    return h(
      "footer",
      { class: "timebar", "aria-label": "time of the recorded runs" },
      h(
        "button",
        { type: "button", class: "main", on: { click: () => (this.isPlaying ? this.pause() : this.play()) } },
        this.isPlaying ? "Pause" : "Play",
      ),
      h("input", {
        type: "range",
        min: "0",
        max: String(this.seconds),
        step: "0.1",
        value: String(Math.round(this.time * 10) / 10),
        "aria-label": "moment of the run",
        "aria-valuetext": `${moment(this.time)} of ${moment(this.seconds)}`,
        on: { input: (event) => this.go(Number(event.target.value)) },
      }),
      h("output", { class: "time" }, `${moment(this.time)} / ${moment(this.seconds)}`),
      h(
        "button",
        { type: "button", "aria-label": "one second back", on: { click: () => this.go(this.time - STEP_SECONDS) } },
        "−1 s",
      ),
      h(
        "button",
        { type: "button", "aria-label": "one second on", on: { click: () => this.go(this.time + STEP_SECONDS) } },
        "+1 s",
      ),
      h(
        "select",
        {
          "aria-label": "speed",
          value: String(this.speed),
          on: { change: (event) => ((this.speed = Number(event.target.value)), this.go(this.time)) },
        },
        SPEEDS.map((speed) => h("option", { value: String(speed) }, `${speed} ×`)),
      ),
    );
  }
}
