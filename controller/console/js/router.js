/** Which page an address names. Pure. */

import * as events from "./pages/events.js";
import * as hosts from "./pages/hosts.js";
import * as job from "./pages/job/page.js";
import * as jobs from "./pages/jobs.js";
import * as network from "./pages/network.js";
import * as overview from "./pages/overview.js";
import * as plan from "./pages/plan.js";
import * as settings from "./pages/settings.js";
import * as studies from "./pages/studies.js";

/** The pages of the menu, in order: their part of the address, and what it takes to read them. */
export const MENU = [
  { path: "", page: overview },
  { path: "jobs", page: jobs },
  { path: "plan", page: plan, needs: "GET /v1/plan" },
  { path: "studies", page: studies },
  { path: "network", page: network, needs: "GET /v1/network" },
  { path: "hosts", page: hosts, needs: "GET /v1/network" },
  { path: "events", page: events },
  { path: "settings", page: settings, needs: "GET /v1/settings" },
];

/** The problems are a part of the overview. */
const PROBLEMS = "problems";

/** Returns `{path, page, parts}` for an address such as `#/jobs/a`: the module of its page, and the parts behind its name. */
export function route(address) {
  const [path, ...parts] = address
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decoded);
  if (path === "jobs" && parts.length > 0 && parts[0] !== "") return { path, page: job, parts };
  if (path === PROBLEMS) return { path: "", page: overview, parts: [PROBLEMS] };
  const found = MENU.find((entry) => entry.path === path);
  return found === undefined ? { path: "", page: overview, parts: [] } : { path, page: found.page, parts };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
