// A real button for each recycle on the chart, so that it can be reached by keyboard and read aloud.

import { h, set } from "./dom.js";
import { clock, spaced } from "./words.js";
import { toneOfOutcome } from "./recycle-facts.js";

export class Markers {
  #marks = new Map();

  constructor(open) {
    this.open = open;
    this.element = h("div", { class: "markers", role: "group", "aria-label": "Recycles on the chart" });
  }

  /** Records to mark; `place` puts them where they belong. A button that stays is the same one: it may have the focus. */
  take(records) {
    const keys = new Map(records.map((record) => [`${record.id} ${record.outcome}`, record]));
    for (const [key, mark] of this.#marks) {
      if (keys.has(key)) continue;
      mark.button.remove();
      this.#marks.delete(key);
    }
    for (const [key, record] of keys) if (!this.#marks.has(key)) this.#marks.set(key, this.#mark(record));
  }

  place(plot) {
    const left = plot.over.offsetLeft;
    for (const { button, at } of this.#marks.values()) button.style.left = `${left + plot.valToPos(at, "x")}px`;
  }

  #mark(record) {
    const label = `Recycle at ${clock(record.time)}: ${spaced(record.trigger)}, ${spaced(record.outcome ?? "under way")}`;
    const button = h("button", { class: "marker", type: "button", "aria-label": label, title: label, onclick: () => this.open(record) });
    set(button, "data-tone", toneOfOutcome(record));
    this.element.append(button);
    return { button, at: Date.parse(record.time) / 1000 };
  }
}
