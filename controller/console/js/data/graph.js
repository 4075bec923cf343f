/** Where the nodes of a network are drawn. Pure. */

const WIDTH = 1000;
const LAYER = 130;
const CELL = 22;
const MOST_NAMED_HOSTS = 60;

/**
 * Returns the places of switches and hosts: switches in layers by their distance from the hosts, the farthest on top,
 * and the hosts below their switch. Many hosts are drawn as small cells, row by row.
 *
 * `{width, height, nodes: Map(name -> {x, y, kind, size}), isDense}`
 */
export function arrange(network) {
  const switches = network.switches.map((one) => one.dpid);
  const hosts = new Map(switches.map((dpid) => [dpid, []]));
  const next = new Map(switches.map((dpid) => [dpid, new Set()]));
  const loose = new Set(network.hosts.map((host) => host.name));
  for (const { a, b } of network.links) {
    if (a.port === null) {
      hosts.get(b.node)?.push(a.node);
      loose.delete(a.node);
    } else {
      next.get(a.node)?.add(b.node);
      next.get(b.node)?.add(a.node);
    }
  }
  const layers = layersOf(switches, hosts, next);
  const nodes = new Map();
  layers.forEach((layer, i) =>
    spread(layer, WIDTH).forEach(([dpid, x]) =>
      nodes.set(dpid, { x, y: 40 + (layers.length - 1 - i) * LAYER, kind: "switch" }),
    ),
  );
  const isDense = network.hosts.length > MOST_NAMED_HOSTS;
  const base = 40 + layers.length * LAYER;
  const bottom = place(
    [...(layers[0] ?? []).map((dpid) => hosts.get(dpid)), [...loose]].filter((group) => group.length > 0),
    nodes,
    base,
    isDense,
  );
  return { width: WIDTH, height: bottom + 40, nodes, isDense };
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
function place(groups, nodes, base, isDense) {
  const all = groups.reduce((sum, group) => sum + group.length, 0);
  let left = 0;
  let bottom = base;
  for (const group of groups) {
    const width = (group.length / all) * WIDTH;
    const columns = isDense ? Math.max(1, Math.floor(width / CELL)) : group.length;
    const step = isDense ? CELL : width / columns;
    group.forEach((name, i) => {
      const y = base + Math.floor(i / columns) * CELL;
      bottom = Math.max(bottom, y);
      nodes.set(name, { x: left + ((i % columns) + 0.5) * step, y, kind: "host" });
    });
    left += width;
  }
  return bottom;
}
