// What a record of the recycle log says, in words.

import { NOTHING, length, plural, rate, share, spaced } from "./words.js";

const TONES = { cured: "good", replaced: "good", partial: "warn", futile: "warn", aborted: "quiet" };

export const toneOfOutcome = (record) => TONES[record.outcome] ?? (record.outcome ? "bad" : "busy");

/** "8.42 → 27.1 tok/s"; empty where nothing was measured. */
export function speedsOf(record) {
  const rates = [record.before?.decode_tok_s, record.after?.decode_tok_s].map(rate);
  return rates.every((text) => text === NOTHING) ? "" : `${rates.join(" → ")} tok/s`;
}

/** "31 % → 99 % of fresh" */
export function sharesOf(record) {
  const shares = [record.before?.ratio, record.after?.ratio].map(share);
  return shares.every((text) => text === NOTHING) ? "" : `${shares.join(" → ")} of fresh`;
}

/** The cause, and what was said first of it: by a person, or by the judge with its numbers. */
export function whyOf(record) {
  const kind = record.cause?.kind;
  const named = kind && !["none", "unknown"].includes(kind) ? spaced(kind) : "";
  return [named, saidOf(record)[0]].filter(Boolean).join(": ") || "no cause known";
}

/** What else speaks for the cause: the course of steps, and the server's own words. */
export const evidenceOf = (record) => saidOf(record).slice(1);

function saidOf(record) {
  return [...new Set([record.reason, ...(record.cause?.evidence ?? [])].filter(Boolean))];
}

export const downtimeOf = (record) => (record.downtime_s ? `${length(record.downtime_s)} down` : "no downtime");

/** "2 requests held, 0 failed" */
export function requestsOf(record) {
  const { held = 0, failed = 0, replayed = 0 } = record.requests ?? {};
  const parts = [`${plural(held, "request")} held`, `${failed} failed`];
  if (replayed) parts.push(`${replayed} replayed`);
  if (record.drain?.cut) parts.push(`${record.drain.cut} cut`);
  return parts.join(", ");
}

const REMEDY_ENDS = { cured: "cured it", partial: "helped a little", futile: "brought nothing", failed: "failed", unmeasured: "could not be measured" };

/** "clear_cache: brought nothing (31 % of fresh); drop_prefix_cache: cured it (98 % of fresh), no worker was stopped" */
export function remediesOf(record) {
  const tried = record.remedies ?? [];
  const parts = tried.map(({ name, outcome, ratio }) => {
    const ratioText = share(ratio);
    return `${spaced(name)}: ${REMEDY_ENDS[outcome] ?? outcome}${ratioText === NOTHING ? "" : ` (${ratioText} of fresh)`}`;
  });
  return parts.join("; ") + (tried.at(-1)?.outcome === "cured" ? ", no worker was stopped" : "");
}
