// Decode rate over time: tabs for prompt sizes and spans, the chart, and the markers of recycles upon it.

import { Chart } from "./chart.js";
import { series, spanOf } from "./chart-data.js";
import { h, say } from "./dom.js";
import { sizesOf } from "./lane-facts.js";
import { Markers } from "./markers.js";
import { Tabs } from "./tabs.js";
import { clock, plural, rate, share } from "./words.js";

const SPANS = [[3600, "1 h"], [6 * 3600, "6 h"], [86_400, "24 h"], [7 * 86_400, "7 d"]];

export class Speed {
  #shown = null;
  #size = null;
  #span = 6 * 3600;

  constructor(open) {
    this.sizes = new Tabs("Prompt size", "speed-panel", (size) => this.#again({ size: Number(size) }));
    this.spans = new Tabs("Time shown", "speed-panel", (span) => this.#again({ span: Number(span) }));
    this.readout = h("p", { class: "readout" });
    this.note = h("p", { class: "quiet note" });
    this.panel = h("div", { id: "speed-panel", role: "tabpanel", "aria-labelledby": "speed-title", class: "panel" });
    this.place = h("div", { class: "plot", role: "img" });
    this.markers = new Markers(open);
    this.chart = new Chart(this.place, (run) => this.#read(run), (plot) => this.markers.place(plot));
    this.panel.append(this.place, this.markers.element);
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "speed-title" },
      h("div", { class: "bar" }, h("h3", { id: "speed-title" }, "Decode rate"), this.readout, this.sizes.element, this.spans.element),
      this.panel,
      this.note,
    );
  }

  draw(lane, samples, recycles) {
    this.#shown = { lane, samples, recycles };
    const sizes = sizesOf(lane, samples);
    if (!sizes.includes(this.#size)) this.#size = sizes[0] ?? null;
    this.sizes.draw(sizes.map((size) => [size, `${size}-token prompts`]), this.#size);
    this.spans.draw(SPANS, this.#span);
    const span = spanOf(samples, recycles, this.#span, Date.now() / 1000);
    const fresh = lane.baseline?.by_prompt_tokens?.[this.#size] ?? null;
    const found = series(samples, this.#size, span);
    const marked = recycles.filter((record) => Date.parse(record.time) / 1000 >= span[0]);
    this.found = { ...found, fresh };
    this.panel.hidden = !found.times.length && !marked.length;
    this.markers.take(marked);
    this.chart.draw({ ...found, span, fresh, below: lane.degraded?.below ?? null, marks: marked.map((one) => Date.parse(one.time) / 1000) });
    this.#describe(lane, marked.length, fresh);
    this.#read(null);
  }

  #again({ size = this.#size, span = this.#span }) {
    [this.#size, this.#span] = [size, span];
    this.draw(this.#shown.lane, this.#shown.samples, this.#shown.recycles);
  }

  /** The run under the pointer, else the newest one. */
  #read(at) {
    const { times, rates, fresh } = this.found;
    const index = at ?? rates.findLastIndex((value) => value !== null);
    const value = rates[index] ?? null;
    const ofFresh = value !== null && fresh ? ` · ${share(value / fresh)} of fresh` : "";
    say(this.readout, value === null ? "no run yet" : `${clock(times[index])} · ${rate(value)} tok/s${ofFresh}`);
  }

  #describe(lane, recycles, fresh) {
    const count = this.found.rates.filter((value) => value !== null).length;
    const below = lane.degraded?.below;
    const band = fresh && below ? `A fresh worker does ${rate(fresh)} tok/s; under ${rate(fresh * below)} it has aged.` : "What fresh means is not known yet.";
    say(this.note, `${band} Each dot is one measurement, the line is their median.`);
    this.place.setAttribute("aria-label", `Decode rate of ${lane.name} at ${this.#size ?? "?"} prompt tokens: ${plural(count, "measurement")}, ${plural(recycles, "recycle")}. ${band}`);
  }
}
