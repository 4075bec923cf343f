/** Numbers, times and names as people read them. All functions are pure. */

const NOTHING = "–";
/** Keeps a number and its unit in one line. */
const GAP = "\u00a0";

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Returns a number with so many significant digits, without an exponent where it can be read without. */
export function number(value, digits = 3) {
  if (!isNumber(value)) return NOTHING;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-6)) return value.toExponential(digits - 1);
  const whole = size >= 10 ** (digits - 1);
  return new Intl.NumberFormat(
    "en",
    whole ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits },
  ).format(value);
}

/** Returns a count: a whole number with separators. */
export function count(value) {
  return isNumber(value) ? new Intl.NumberFormat("en", { maximumFractionDigits: 0 }).format(value) : NOTHING;
}

/** Returns a count with its noun: "1 job", "3 jobs". */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

function scaled(value, units, step) {
  let at = 0;
  let left = Math.abs(value);
  while (left >= step && at < units.length - 1) {
    left /= step;
    at += 1;
  }
  return `${value < 0 ? "-" : ""}${number(left)}${GAP}${units[at]}`;
}

/** Returns bytes with a unit. */
export function bytes(value) {
  return isNumber(value) ? scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"], 1000) : NOTHING;
}

/** Returns a rate in bit/s with a unit. */
export function rate(value) {
  return isNumber(value) ? scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"], 1000) : NOTHING;
}

/** Returns a length of time in seconds with the units that people use for it, as `controller/quantities.py` does. */
export function duration(seconds) {
  if (!isNumber(seconds)) return NOTHING;
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "-" : "";
  if (size === 0) return `0${GAP}s`;
  // The limits are where a number would be rounded to 1000 of its unit, or to 60.
  if (size < 0.9995e-3) return `${sign}${number(size * 1e6)}${GAP}µs`;
  if (size < 0.9995) return `${sign}${number(size * 1e3)}${GAP}ms`;
  if (size < 59.95) return `${sign}${number(size, size < 10 ? 2 : 3)}${GAP}s`;
  const whole = Math.round(size);
  if (whole < 3600) return `${sign}${parts(whole, 60, "min", "s")}`;
  if (whole < 86370) return `${sign}${parts(Math.round(whole / 60), 60, "h", "min")}`;
  return `${sign}${parts(Math.round(whole / 3600), 24, "d", "h")}`;
}

function parts(value, size, large, small) {
  const rest = value % size;
  return `${Math.floor(value / size)}${GAP}${large}${rest ? ` ${rest}${GAP}${small}` : ""}`;
}

/** Returns a pace, of so many units a second: "1.2 iterations/s", or by the minute or hour where it is slow. */
export function pace(perSecond, unit) {
  if (!isNumber(perSecond)) return NOTHING;
  const [times, of] = perSecond >= 0.1 || perSecond === 0 ? [1, "s"] : perSecond >= 0.1 / 60 ? [60, "min"] : [3600, "h"];
  const text = number(perSecond * times, 2);
  return `${text}${GAP}${unit}${text === "1" ? "" : "s"}/${of}`;
}

/** Returns a share between 0 and 1 in percent. What is rounded to nothing has no sign. */
export function percent(share, digits = 0) {
  return isNumber(share)
    ? `${new Intl.NumberFormat("en", { maximumFractionDigits: digits, signDisplay: "negative" }).format(share * 100)}${GAP}%`
    : NOTHING;
}

/** Returns the time of day of seconds since the Unix epoch, with the date where it is not today. */
export function clock(seconds, now = Date.now() / 1000) {
  if (!isNumber(seconds)) return NOTHING;
  const moment = new Date(seconds * 1000);
  const time = moment.toLocaleTimeString("en-GB");
  const isToday = moment.toDateString() === new Date(now * 1000).toDateString();
  return isToday ? time : `${moment.toLocaleDateString("en-CA")} ${time}`;
}

/** Returns the time zone that `clock` shows times in: "UTC", or "Asia/Tokyo (UTC+09:00)". */
export function zone(now = Date.now()) {
  const format = new Intl.DateTimeFormat("en", { timeZoneName: "longOffset" });
  const { timeZone } = format.resolvedOptions();
  if (timeZone === "UTC") return timeZone;
  const offset = format.formatToParts(now).find((part) => part.type === "timeZoneName").value;
  return `${timeZone} (${offset.replace("GMT", "UTC")})`;
}

/** Returns a moment of a recording: minutes, seconds and tenths since its start. */
export function moment(seconds) {
  if (!isNumber(seconds)) return NOTHING;
  const tenths = Math.round(Math.abs(seconds) * 10);
  const text = `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
  return seconds < 0 ? `-${text}` : text;
}

/** Returns the name of a class: "class 0", "other" for traffic of no job, or "all" for what is counted together. */
export function className(name) {
  if (name === "all") return "all classes";
  return name === "other" || name === null || name === undefined ? "other traffic" : `class ${name}`;
}

/** Returns names in a sentence, at most so many: "a, b and 3 more". */
export function names(list, most = 3) {
  if (list.length === 0) return "none";
  if (list.length > most) return `${list.slice(0, most).join(", ")} and ${count(list.length - most)} more`;
  return list.length === 1 ? list[0] : `${list.slice(0, -1).join(", ")} and ${list[list.length - 1]}`;
}

/** Compares names as people do: a2 before a10. */
export const compareNames = new Intl.Collator("en", { numeric: true }).compare;
