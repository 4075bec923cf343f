/** Reads a recording in parts, and keeps the last few of them. */

const KEPT = 4;

export class Parts {
  #api;
  #path;
  #kept = new Map();

  /** `path` is the address of the recording. `moments` has the latest time before each part. */
  constructor(api, path, moments) {
    this.#api = api;
    this.#path = path;
    this.moments = moments;
  }

  /** Returns the number of the part in which a moment lies: of the last one that begins no later. */
  at(time) {
    let [low, high] = [0, this.moments.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.moments[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Returns the events of a part, in order. */
  events(number) {
    return this.#read(`part/${number}`, async (response) => lines(await response.text()));
  }

  /** Returns the state before a part, which `restore` takes. */
  state(number) {
    return this.#read(`state/${number}`, (response) => response.json());
  }

  #read(name, decoded) {
    const known = this.#kept.get(name);
    this.#kept.delete(name);
    const reading = known ?? this.#api.open(`${this.#path}/${name}`).then(decoded);
    this.#kept.set(name, reading); // as the last one, so that what was not used for longest goes first
    for (const other of this.#kept.keys()) if (this.#kept.size > KEPT) this.#kept.delete(other);
    reading.catch(() => this.#kept.delete(name));
    return reading;
  }
}

function lines(text) {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line));
}
