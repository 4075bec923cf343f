/** Documents that have something by the name of a job. */

/** Returns what a document has under a name, or undefined. A job may be called as what every object has: `constructor`. */
export function own(document, name) {
  return document && Object.hasOwn(document, name) ? document[name] : undefined;
}
