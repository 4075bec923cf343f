/** A line of a metric in the height of a row, with the interval of its predicted target. */

import { h } from "./dom.js";
import { number } from "./format.js";

const WIDTH = 120;
const HEIGHT = 26;

/**
 * Returns a small chart of points (iteration, metric). `target` may have `metric`, `iteration`, `low` and `high`: it is
 * drawn as a line at its metric between low and high, with a dot at its median.
 */
export function sparkline(points, target, label) {
  if (points.length < 2) return h("span", { class: "muted" }, "–");
  const ahead = target !== null && typeof target.metric === "number" && typeof target.iteration === "number";
  const xs = points.map((point) => point[0]);
  const ys = points.map((point) => point[1]);
  const [left, right] = [xs[0], Math.max(xs.at(-1), ahead ? (target.high ?? target.iteration) : 0)];
  const low = Math.min(...ys, ahead ? target.metric : Infinity);
  const high = Math.max(...ys, ahead ? target.metric : -Infinity);
  const x = (value) => (((value - left) / (right - left || 1)) * (WIDTH - 6) + 3).toFixed(1);
  const y = (value) => (HEIGHT - 3 - ((value - low) / (high - low || 1)) * (HEIGHT - 6)).toFixed(1);
  const path = points.map(([a, b], i) => `${i === 0 ? "M" : "L"}${x(a)} ${y(b)}`).join("");
  const text = `${label}: ${number(ys.at(-1))}${ahead ? `, ${number(target.metric)} is expected at iteration ${number(target.iteration)}` : ""}`;
  return h(
    "svg",
    {
      class: "spark",
      width: WIDTH,
      height: HEIGHT,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": text,
    },
    ahead &&
      h("line", {
        class: "spark-interval",
        x1: x(target.low ?? target.iteration),
        x2: x(target.high ?? target.iteration),
        y1: y(target.metric),
        y2: y(target.metric),
      }),
    ahead && h("circle", { class: "spark-target", cx: x(target.iteration), cy: y(target.metric), r: 2.5 }),
    h("path", { class: "spark-line", d: path }),
  );
}
