/** The console: of a running controller, or of recorded runs side by side. */

import { Api } from "./data/api.js";
import { Live } from "./data/live.js";
import { Recorded } from "./data/recorded.js";
import { MENU, route } from "./router.js";
import { askForToken } from "./ui/dialog.js";
import { h, patch } from "./ui/dom.js";
import { shell } from "./ui/shell.js";
import { TimeBar } from "./ui/timebar.js";

const LEAST_MS = 250;
const THEMES = ["system", "light", "dark"];

const app = document.querySelector("#app");
let sources = [];
let recordings = [];
let timebar = null;
let pages = [];
let shown = null;
let drawnAt = 0;
let timer = null;
let frame = null;

/** Draws soon: at once where the last drawing is a while ago, else when `LEAST_MS` have passed. */
function redrawSoon() {
  if (frame === null) timer ??= setTimeout(redraw, Math.max(0, LEAST_MS - (performance.now() - drawnAt)));
}

/** Draws in the next frame. */
function redraw() {
  clearTimeout(timer);
  timer = null;
  frame ??= requestAnimationFrame(draw);
}

function draw() {
  frame = null;
  drawnAt = performance.now();
  const { path, page, parts } = route(location.hash);
  const stamp = location.hash;
  const isNew = shown !== stamp;
  if (isNew || pages.length !== sources.length) {
    pages = sources.map(() => page.makePage(redraw, parts));
    shown = stamp;
  }
  const heading = pages[0]?.title ?? page.title;
  document.title = `${heading} – Trainyard`;
  sources.forEach((source, i) => source.want(pages[i].wants(source.state)));
  const menu = MENU.filter(
    (entry) =>
      sources[0].isRecorded ||
      entry.needs === undefined ||
      sources[0].state.caller === null ||
      sources[0].may(entry.needs),
  );
  const focused = document.activeElement;
  patch(
    app,
    shell({
      sources,
      menu: menu.map((entry) => ({ path: entry.path, title: entry.page.title })),
      path,
      heading,
      content: sources.map((source, i) => (source.state.time === null ? null : pages[i].render(source))),
      timebar: timebar?.render() ?? null,
      chooser: recordings.length > 2 ? chooser() : null,
      theme: document.documentElement.dataset.theme ?? "system",
      onTheme: nextTheme,
    }),
  );
  // A row that was moved loses the focus.
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  if (!isNew) return;
  scrollTo(0, 0);
  if (document.activeElement !== document.body) document.querySelector("main").focus({ preventScroll: true });
  if (pages[0]?.part) document.querySelector(`[data-part="section-${pages[0].part}"]`)?.parentElement.scrollIntoView();
}

function nextTheme() {
  const now = document.documentElement.dataset.theme ?? "system";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  redraw();
}

/** Lets people choose which two runs are shown. */
function chooser() {
  return sources.map((source, i) =>
    h(
      "select",
      {
        "aria-label": i === 0 ? "run on the left" : "run on the right",
        value: String(recordings.indexOf(source)),
        on: { change: (event) => choose(i, Number(event.target.value)) },
      },
      recordings.map((one, number) => h("option", { value: String(number) }, one.title)),
    ),
  );
}

function choose(column, number) {
  sources[column] = recordings[number];
  pages = [];
  timebar.go(timebar.time);
}

async function startRecorded(api) {
  app.textContent = "Loading the recorded runs.";
  recordings = await Recorded.readAll(api, redraw);
  sources = recordings.slice(0, 2);
  const span = Math.max(...recordings.map((one) => one.seconds));
  for (const recording of recordings) recording.span = span;
  timebar = new TimeBar(
    span,
    (time) => {
      for (const source of sources) source.seek(time);
      redraw();
    },
    () => sources.some((source) => source.isBehind),
  );
  timebar.go(0);
  timebar.play();
}

function startLive(api) {
  const live = new Live(api, {
    needsToken: document.documentElement.dataset.token === "asked",
    onChange: redrawSoon,
    onToken: async (problem) => api.useToken(await askForToken(problem)),
  });
  sources = [live];
  live.run();
}

addEventListener("hashchange", redraw);
// The address of this link would be taken for a page's.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector("main").focus();
});
const api = new Api();
if (document.documentElement.dataset.source !== "recorded") startLive(api);
else {
  try {
    await startRecorded(api);
  } catch (error) {
    app.textContent = `The recorded runs cannot be shown: ${error.message}`;
    throw error;
  }
}
redraw();
