/** Charts, drawn by Plotly, which is loaded when the first chart is shown. */

import { h } from "./dom.js";

const SOURCE = "console/vendor/plotly.min.js";
/** The library has a map in it, which writes its style into the page unless an element with this id is there. */
const MAP_STYLE = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";
let loading = null;

function library() {
  loading ??= new Promise((done, failed) => {
    const placeholder = document.createElement("meta");
    placeholder.id = MAP_STYLE;
    document.head.append(placeholder);
    const script = document.createElement("script");
    script.src = SOURCE;
    script.addEventListener("load", () => done(globalThis.Plotly));
    script.addEventListener("error", () =>
      failed(new Error("the chart library is not installed with this controller")),
    );
    document.head.append(script);
  });
  return loading;
}

const drawn = new WeakMap();
const charts = new Set();

/**
 * Returns a chart. `label` says in words what it shows. `traces(colour)` returns Plotly's traces; `colour(name)` is a
 * colour of the style sheet. `layout` is added to the layout. `stamp` changes when the data do: nothing is drawn twice.
 */
export function chart({ key, label, traces, layout = {}, stamp }) {
  return h("div", {
    key,
    class: "chart",
    role: "img",
    "aria-label": label,
    keep: (node) => draw(node, traces, layout, `${stamp} ${scheme()}`),
  });
}

function scheme() {
  return `${matchMedia("(prefers-color-scheme: dark)").matches} ${document.documentElement.dataset.theme ?? ""}`;
}

async function draw(node, traces, layout, stamp) {
  if (drawn.get(node) === stamp) return;
  drawn.set(node, stamp);
  // The library writes attributes of its own, so it gets an element of its own.
  const inner = node.firstElementChild ?? node.appendChild(document.createElement("div"));
  if (globalThis.Plotly === undefined) inner.textContent = "Loading the chart.";
  try {
    const plotly = await library();
    for (const chart of charts) if (!chart.isConnected && charts.delete(chart)) plotly.purge(chart.firstElementChild);
    if (!node.isConnected || drawn.get(node) !== stamp) return;
    if (!charts.has(node)) inner.textContent = "";
    charts.add(node);
    await plotly.react(inner, traces(colourOf(node)), merged(base(node), layout), {
      displaylogo: false,
      displayModeBar: false,
      responsive: true,
    });
  } catch (error) {
    inner.textContent = error.message;
  }
}

function colourOf(node) {
  const style = getComputedStyle(node);
  // The colour of an element is computed; a custom property is not.
  return (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    node.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour || style.color;
  };
}

function base(node) {
  const colour = colourOf(node);
  const axis = {
    gridcolor: colour("line"),
    zerolinecolor: colour("line"),
    linecolor: colour("line"),
    automargin: true,
  };
  return {
    margin: { l: 56, r: 16, t: 8, b: 40 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("text"), family: "inherit", size: 12 },
    hovermode: "x unified",
    hoverlabel: { bgcolor: colour("raised"), font: { color: colour("text") } },
    legend: { orientation: "h", y: -0.25 },
    xaxis: axis,
    yaxis: axis,
  };
}

function merged(left, right) {
  const result = { ...left };
  for (const [name, value] of Object.entries(right)) {
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    result[name] = isObject ? merged(left[name] ?? {}, value) : value;
  }
  return result;
}
