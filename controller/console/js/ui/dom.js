/** Makes the page equal to a description of it, and changes only what differs. */

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = Symbol("handlers");
const KEY = Symbol("key");
const DESCRIBED = Symbol("described");
/** Attributes that people change by themselves: they stay. */
const OF_PEOPLE = { details: "open" };
const AS_PROPERTY = new Set(["value", "checked", "disabled", "selected", "indeterminate"]);

/**
 * Returns a description of an element.
 *
 * `props` are attributes. `on` has handlers by event. `key` identifies a child among its siblings. `style` has
 * properties by name. With `keep` the element's children are not touched: `keep(element)` is called after each change,
 * and takes care of them. An element that is described by the same object as before is left as it is: whoever keeps a
 * description may save the work of both.
 */
export function h(tag, props, ...children) {
  return {
    tag,
    props: props ?? {},
    children: children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  };
}

/** Makes the children of `parent` equal to the described ones. */
export function patch(parent, described) {
  const children = [described]
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false);
  const keyed = new Map();
  for (const node of parent.childNodes) if (node[KEY] !== undefined) keyed.set(node[KEY], node);
  let at = parent.firstChild;
  for (const child of children) {
    const found = match(child, at, keyed);
    const node = found ?? create(child, parent);
    if (node !== at) parent.insertBefore(node, at);
    else at = at.nextSibling;
    update(node, child);
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function match(child, at, keyed) {
  if (typeof child !== "object") return at !== null && at.nodeType === Node.TEXT_NODE ? at : null;
  const key = child.props.key;
  const node = key === undefined ? at : keyed.get(key);
  if (key !== undefined) keyed.delete(key);
  if (!node || node.nodeType !== Node.ELEMENT_NODE || node.localName !== child.tag) return null;
  return node[KEY] === key ? node : null;
}

function create(child, parent) {
  if (typeof child !== "object") return document.createTextNode(String(child));
  const isSvg = child.tag === "svg" || (parent.namespaceURI === SVG && parent.localName !== "foreignObject");
  const node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  if (child.props.key !== undefined) node[KEY] = child.props.key;
  return node;
}

function update(node, child) {
  if (typeof child !== "object") {
    const text = String(child);
    if (node.data !== text) node.data = text;
    return;
  }
  if (node[DESCRIBED] === child) return;
  node[DESCRIBED] = child;
  const { key: _key, on, style, keep, ...attributes } = child.props;
  setAttributes(node, attributes, style !== undefined);
  if (style !== undefined) setStyle(node, style);
  setHandlers(node, on ?? {});
  if (keep !== undefined) keep(node);
  else {
    patch(node, child.children);
    // The options of a list must be there before its value can be set.
    if (node.localName === "select" && "value" in attributes && node.value !== attributes.value)
      node.value = attributes.value;
  }
}

function setAttributes(node, attributes, hasStyle) {
  for (const name of node.getAttributeNames()) {
    if (!(name in attributes) && !(name === "style" && hasStyle) && OF_PEOPLE[node.localName] !== name)
      node.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (AS_PROPERTY.has(name) && node.localName !== "option") {
      if (node[name] !== value) node[name] = value;
    } else if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else {
      const text = value === true ? "" : String(value);
      if (node.getAttribute(name) !== text) node.setAttribute(name, text);
    }
  }
}

function setStyle(node, style) {
  for (const [name, value] of Object.entries(style)) {
    const text = String(value);
    if (node.style.getPropertyValue(name) !== text) node.style.setProperty(name, text);
  }
}

function setHandlers(node, handlers) {
  const known = (node[HANDLERS] ??= new Map());
  for (const [type, handler] of Object.entries(handlers)) {
    if (!known.has(type)) node.addEventListener(type, (event) => known.get(type)?.(event));
    known.set(type, handler);
  }
  for (const type of known.keys()) if (!(type in handlers)) known.set(type, null);
}
