/** Where the nodes of a network are drawn. Pure. */

const LAYER = 130;
const CELL = 22;
/** The room of a host with its name, and of a switch. */
const NAMED = { width: 44, height: 48 };
const SWITCH_WIDTH = 76;
/** Where a line to a host of a lower row has its corners: so far above the row, and so far from the lines to other rows. */
const CORNER = 18;
const LINE_GAP = 3;
const MOST_NAMED_HOSTS = 60;
/** Many hosts on a narrow screen are drawn on a wider paper, which is scaled down: else they would be too many rows. */
const DENSE_WIDTH = 600;

/**
 * Returns the places of switches and hosts: switches in layers by their distance from the hosts, the farthest on top,
 * and the hosts below their switch, row by row. Many hosts are drawn as small cells. `room` is the width of the screen
 * in pixels: the picture is wider only where the switches of a layer need more.
 *
 * `{isWide, width, height, nodes: Map(name -> {x, y, kind, via}), isDense}`. `via` are the corners of the line from the
 * switch to a host of a lower row, which goes between the hosts above it.
 */
export function arrange(network, room = 1000) {
  const switches = network.switches.map((one) => one.dpid);
  const hosts = new Map(switches.map((dpid) => [dpid, []]));
  const next = new Map(switches.map((dpid) => [dpid, new Set()]));
  const loose = new Set(network.hosts.map((host) => host.name));
  for (const { a, b } of network.links) {
    if (a.port === null) {
      // A host with links to several switches stands below the first of them.
      if (hosts.has(b.node) && loose.delete(a.node)) hosts.get(b.node).push(a.node);
    } else {
      next.get(a.node)?.add(b.node);
      next.get(b.node)?.add(a.node);
    }
  }
  const layers = layersOf(switches, hosts, next);
  const nodes = new Map();
  const isDense = network.hosts.length > MOST_NAMED_HOSTS;
  const width = Math.max(room, isDense ? DENSE_WIDTH : 0, ...layers.map((layer) => layer.length * SWITCH_WIDTH));
  layers.forEach((layer, i) =>
    spread(layer, width).forEach(([dpid, x]) =>
      nodes.set(dpid, { x, y: 40 + (layers.length - 1 - i) * LAYER, kind: "switch" }),
    ),
  );
  const base = 40 + layers.length * LAYER;
  const bottom = place(
    [...(layers[0] ?? []).map((dpid) => hosts.get(dpid)), [...loose]].filter((group) => group.length > 0),
    nodes,
    { base, width, isDense },
  );
  return { isWide: width > room, width, height: bottom + 40, nodes, isDense };
}

function layersOf(switches, hosts, next) {
  const layer = new Map(switches.filter((dpid) => hosts.get(dpid).length > 0).map((dpid) => [dpid, 0]));
  const queue = [...layer.keys()];
  for (const dpid of queue) {
    for (const other of next.get(dpid)) {
      if (layer.has(other)) continue;
      layer.set(other, layer.get(dpid) + 1);
      queue.push(other);
    }
  }
  const layers = [];
  for (const dpid of switches) (layers[layer.get(dpid) ?? 0] ??= []).push(dpid);
  return layers;
}

function spread(names, width) {
  return names.map((name, i) => [name, ((i + 0.5) / names.length) * width]);
}

/** Places groups of hosts side by side. Returns the lowest y. */
function place(groups, nodes, { base, width: whole, isDense }) {
  const cell = isDense ? { width: CELL, height: CELL } : NAMED;
  const all = groups.reduce((sum, group) => sum + group.length, 0);
  let left = 0;
  let bottom = base;
  for (const group of groups) {
    const width = (group.length / all) * whole;
    const columns = Math.max(1, Math.min(Math.floor(width / cell.width), isDense ? Infinity : group.length));
    const step = isDense ? cell.width : width / columns;
    group.forEach((name, i) => {
      const y = base + Math.floor(i / columns) * cell.height;
      bottom = Math.max(bottom, y);
      const [x, row] = [left + ((i % columns) + 0.5) * step, Math.floor(i / columns)];
      // Lines to several rows of a column lie beside each other.
      const between = x + step / 2 - LINE_GAP * row;
      const via = row === 0 || isDense ? [] : [base, y].map((height) => [between, height - CORNER]);
      nodes.set(name, { x, y, kind: "host", via });
    });
    left += width;
  }
  return bottom;
}
