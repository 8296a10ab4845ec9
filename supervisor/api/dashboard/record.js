// One recycle in full: a sentence, its numbers, and the record as it stands in the log.

import { openDialog } from "./dialogs.js";
import { h } from "./dom.js";
import { downtimeOf, evidenceOf, remediesOf, requestsOf, sharesOf, speedsOf, toneOfOutcome, whyOf } from "./recycle-facts.js";
import { clock, length, longLength, many, rate, share, size, spaced } from "./words.js";

/** Show a record; comes back when it is closed. */
export function showRecord(record) {
  return openDialog(`Recycle of ${record.lane}`, "record", (close) => [
    h("p", {}, h("span", { class: "state", "data-tone": toneOfOutcome(record) }, spaced(record.outcome ?? "under way")), ` ${clock(record.time)}, ${spaced(record.trigger)}`),
    h("p", {}, whyOf(record)),
    evidenceOf(record).length ? h("ul", { class: "evidence" }, ...evidenceOf(record).map((said) => h("li", {}, said))) : null,
    h("dl", { class: "rows" }, ...rowsOf(record).flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])),
    h("details", {}, h("summary", {}, "The record as JSON"), h("pre", { tabindex: 0 }, JSON.stringify(record, null, 2))),
    h("div", { class: "buttons" }, h("button", { type: "button", autofocus: true, onclick: close }, "Close")),
  ]);
}

/** "256: 63.2, 3072: 29.3 tok/s"; empty where there is only one. */
function sizesOf(bySize) {
  const sizes = Object.entries(bySize).map(([size, tokS]) => `${size}: ${rate(tokS)}`);
  return sizes.length > 1 ? `${sizes.join(", ")} tok/s` : "";
}

/** No evidence of a sample is whole: "98 %", "over 99 %". */
const sureness = (confidence) => (confidence > 0.99 ? `over ${share(0.99)}` : share(confidence));

function rowsOf(record) {
  const { before = {}, worker = {}, memory = {}, stop = {}, drain = {}, prefix_cache: prefix = {} } = record;
  return [
    ["Speed", [speedsOf(record), sharesOf(record)].filter(Boolean).join(", ")],
    ["By prompt size", sizesOf(before.by_prompt_tokens ?? {})],
    ["Sure", before.interval ? `between ${share(before.interval[0])} and ${share(before.interval[1])} of fresh, confidence ${sureness(before.confidence)}` : ""],
    ["Runs", before.samples?.length ? before.samples.map(rate).join(", ") : ""],
    ["Tried first", remediesOf(record)],
    ["Downtime", `${downtimeOf(record)}, ${spaced(record.replace)}`],
    ["Requests", `${requestsOf(record)}; ${drain.inflight ?? 0} in flight, waited ${length(drain.waited_s)}`],
    ["Old worker", `#${worker.generation}, up ${longLength(worker.uptime_s)}, ${many(worker.requests)} requests, ${many(worker.generated_tokens)} tokens, ${size(worker.memory_bytes || null)}`],
    ["Stop", stop.signal ? `${stop.signal}, took ${length(stop.took_s)}${stop.killed ? ", killed" : ""}` : ""],
    ["Free memory", memory.after_exit ? `${size(memory.after_exit)} after its exit, ${size(memory.after_start)} after the start` : ""],
    ["Prefix cache", prefix.saved_tokens ? `${many(prefix.saved_tokens)} tokens saved, ${many(prefix.restored_tokens)} restored` : ""],
    ["Next", record.next],
  ].filter(([, text]) => text);
}
