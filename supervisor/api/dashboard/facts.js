// The numbers of now.

import { h, say } from "./dom.js";
import { ratioOf, speedOf } from "./lane-facts.js";
import { ago, longLength, many, NOTHING, rate, share, size, spaced } from "./words.js";

const FACTS = [
  ["Decode rate", (lane) => [rate(speedOf(lane)), "tok/s", probeOf(lane)]],
  ["Of a fresh worker", (lane) => [share(ratioOf(lane)), "", intervalOf(lane)]],
  ["In flight", (lane) => [lane.inflight, "", `${many(lane.totals?.requests)} requests so far`]],
  ["Held", (lane) => [lane.queued, "", `${many(lane.totals?.held ?? 0)} so far, ${lane.totals?.failed ?? 0} failed`]],
  ["Memory", (lane) => [...size(lane.worker?.memory_bytes || null).split("\u00a0"), ""].slice(0, 2).concat(aside(lane))],
  ["Worker", (lane) => workerOf(lane)],
];

export class Facts {
  #shown = [];

  constructor() {
    this.element = h("dl", { class: "facts" });
    for (const [name] of FACTS) {
      const fact = { value: h("span", { class: "value" }), unit: h("span", { class: "unit" }), more: h("span", { class: "more" }) };
      this.#shown.push(fact);
      this.element.append(h("div", {}, h("dt", {}, name), h("dd", {}, fact.value, " ", fact.unit, fact.more)));
    }
  }

  draw(lane) {
    FACTS.forEach(([, read], at) => {
      const [value, unit, more] = read(lane);
      say(this.#shown[at].value, value);
      say(this.#shown[at].unit, unit);
      say(this.#shown[at].more, more);
    });
  }
}

function probeOf({ last_probe: probe }) {
  if (!probe) return "not measured yet";
  return probe.void ? `tried ${ago(probe.wall)}: ${spaced(probe.void)}` : `measured ${ago(probe.wall)}`;
}

function intervalOf(lane) {
  const interval = lane.verdict?.interval;
  if (interval) return `between ${share(interval[0])} and ${share(interval[1])}`;
  return lane.baseline?.decode_tok_s ? `fresh is ${rate(lane.baseline.decode_tok_s)} tok/s` : "fresh is not known yet";
}

function workerOf(lane) {
  const worker = lane.worker;
  if (!worker) return [NOTHING, "", "no process"];
  return [`#${worker.generation}`, "", `pid ${worker.pid ?? NOTHING}, up ${longLength(worker.uptime_s)}`];
}

function aside(lane) {
  if (lane.candidate) return "and a successor beside it";
  return lane.worker ? `${many(lane.worker.generated_tokens)} tokens generated` : "";
}
