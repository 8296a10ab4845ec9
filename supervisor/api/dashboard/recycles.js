// The lane's recycles, newest first: the chart's markers as a list.

import { h } from "./dom.js";
import { downtimeOf, requestsOf, sharesOf, speedsOf, toneOfOutcome, whyOf } from "./recycle-facts.js";
import { clock, spaced } from "./words.js";

const MOST = 30;

export class Recycles {
  #ids = "";

  constructor(open) {
    this.open = open;
    this.list = h("ol", { class: "recycles" });
    this.element = h("section", { class: "card", "aria-labelledby": "recycles-title" }, h("h3", { id: "recycles-title" }, "Recycles"), this.list);
  }

  draw(records) {
    const shown = records.slice(-MOST).reverse();
    const ids = shown.map((record) => `${record.id}${record.outcome}`).join() || "none";
    if (ids === this.#ids) return;
    this.#ids = ids;
    const rows = shown.map((record) => h("li", {}, this.#row(record)));
    this.list.replaceChildren(...(rows.length ? rows : [h("li", { class: "quiet" }, "None yet. When a worker ages, its record comes here.")]));
  }

  #row(record) {
    const numbers = [speedsOf(record), sharesOf(record), downtimeOf(record), requestsOf(record)].filter(Boolean).join(" · ");
    return h(
      "button",
      { class: "recycle", type: "button", onclick: () => this.open(record) },
      h("time", { datetime: record.time }, clock(record.time)),
      h("span", { class: "state", "data-tone": toneOfOutcome(record) }, spaced(record.outcome ?? "under way")),
      h("span", { class: "why" }, `${spaced(record.trigger)} · ${whyOf(record)}`),
      h("span", { class: "quiet numbers" }, numbers),
    );
  }
}
