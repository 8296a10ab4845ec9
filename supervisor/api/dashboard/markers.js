// A real button for each recycle on the chart, so that it can be reached by keyboard and read aloud.

import { h, set } from "./dom.js";
import { clock, spaced } from "./words.js";
import { toneOfOutcome } from "./recycle-facts.js";

export class Markers {
  #buttons = [];

  constructor(open) {
    this.open = open;
    this.element = h("div", { class: "markers", role: "group", "aria-label": "Recycles on the chart" });
  }

  /** Records to mark; `place` puts them where they belong. */
  take(records) {
    this.#buttons = records.map((record) => {
      const label = `Recycle at ${clock(record.time)}: ${spaced(record.trigger)}, ${spaced(record.outcome ?? "under way")}`;
      const button = h("button", { class: "marker", type: "button", "aria-label": label, title: label, onclick: () => this.open(record) });
      set(button, "data-tone", toneOfOutcome(record));
      return { button, at: Date.parse(record.time) / 1000 };
    });
    this.element.replaceChildren(...this.#buttons.map(({ button }) => button));
  }

  place(plot) {
    const left = plot.over.offsetLeft;
    for (const { button, at } of this.#buttons) button.style.left = `${left + plot.valToPos(at, "x")}px`;
  }
}
