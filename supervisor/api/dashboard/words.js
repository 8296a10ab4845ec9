// Numbers in words, as the commands in a terminal say them.

export const NOTHING = "–";
const GAP = "\u00a0"; // a line never ends between a number and its unit
const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

/** Tokens per second: 8.42, 46.3, 185. */
export const rate = (tokS) => (known(tokS) ? tokS.toFixed(tokS < 10 ? 2 : tokS < 100 ? 1 : 0) : NOTHING);

/** A ratio as percent: 31 %. */
export const share = (ratio) => (known(ratio) ? `${Math.round(ratio * 100)}${GAP}%` : NOTHING);

/** Bytes in powers of ten: 1.4 GB. */
export function size(bytes) {
  if (!known(bytes)) return NOTHING;
  const [unit, worth] = [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, w]) => bytes >= w) ?? ["B", 1];
  return `${(bytes / worth).toFixed(worth > 1e6 ? 1 : 0)}${GAP}${unit}`;
}

/** A count that may be large: 950, 12.4k, 3.1M. */
export function many(count) {
  if (!known(count)) return NOTHING;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)}M`;
  return count >= 1e4 ? `${(count / 1e3).toFixed(1)}k` : String(Math.round(count));
}

const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** A length of time in its largest unit: 35 ms, 1.4 s, 12 s, 3 min. */
export function length(seconds) {
  if (!known(seconds)) return NOTHING;
  if (seconds > 0 && seconds < 1) return `${Math.round(seconds * 1000)}${GAP}ms`;
  if (seconds > 0 && seconds < 10) return `${seconds.toFixed(1)}${GAP}s`;
  const [unit, worth] = UNITS.find(([, w]) => seconds >= w) ?? ["s", 1];
  return `${Math.floor(seconds / worth)}${GAP}${unit}`;
}

/** A length of time in its two largest units: 6 h 12 min. */
export function longLength(seconds) {
  if (!known(seconds) || seconds < 60) return known(seconds) ? `${Math.floor(seconds)}${GAP}s` : NOTHING;
  const at = UNITS.findIndex(([, worth]) => seconds >= worth);
  const [[unit, worth], [lower, lowerWorth]] = [UNITS[at], UNITS[at + 1]];
  const rest = Math.floor((seconds % worth) / lowerWorth);
  return `${Math.floor(seconds / worth)}${GAP}${unit}${rest ? ` ${rest}${GAP}${lower}` : ""}`;
}

/** How long ago a moment (RFC 3339, or Unix seconds) was. */
export function ago(moment, now = Date.now()) {
  const seconds = (now - toMs(moment)) / 1000;
  if (!known(seconds)) return NOTHING;
  if (seconds < 2) return "just now";
  return `${Math.floor(seconds) < 10 ? Math.floor(seconds) + GAP + "s" : length(seconds)} ago`;
}

/** Unix milliseconds of a moment. */
export const toMs = (moment) => (typeof moment === "number" ? moment * 1000 : Date.parse(moment));

/** A moment on this machine's clock: "14:05" today, else "Tue 14:05" or "3 Mar 14:05". */
export function clock(moment, now = new Date()) {
  const at = new Date(toMs(moment));
  if (Number.isNaN(at.getTime())) return NOTHING;
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const days = (now - at) / 86_400_000;
  if (at.toDateString() === now.toDateString()) return time;
  const day = days < 6 ? { weekday: "short" } : { day: "numeric", month: "short" };
  return `${at.toLocaleDateString("en-GB", day)} ${time}`;
}

/** "1 request", "3 requests". */
export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** "backing_off" as "backing off". */
export const spaced = (word) => String(word ?? "").replaceAll("_", " ");
