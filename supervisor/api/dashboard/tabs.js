// A row of choices of which one is chosen; arrow keys go from one to the next.

import { h, set } from "./dom.js";

export class Tabs {
  #names = [];
  #buttons = [];

  /** `choose(value)` hears of each choice; the panel with the id `panel` shows what was chosen. */
  constructor(label, panel, choose) {
    this.panel = panel;
    this.choose = choose;
    this.element = h("div", { class: "tabs", role: "tablist", "aria-label": label, onkeydown: (event) => this.#step(event) });
  }

  /** Show `choices` ([value, text]) with `chosen` marked. */
  draw(choices, chosen) {
    const names = choices.map(([value, text]) => `${value}:${text}`);
    if (names.join() !== this.#names.join()) {
      this.#names = names;
      this.#buttons = choices.map(([value, text]) =>
        h("button", { type: "button", role: "tab", "aria-controls": this.panel, "data-value": value, onclick: () => this.choose(value) }, text),
      );
      this.element.replaceChildren(...this.#buttons);
    }
    for (const button of this.#buttons) {
      const isChosen = button.dataset.value === String(chosen);
      set(button, "aria-selected", String(isChosen));
      set(button, "tabindex", isChosen ? "0" : "-1");
    }
  }

  #step(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = this.#buttons.indexOf(document.activeElement);
    const next = this.#buttons[(at + by + this.#buttons.length) % this.#buttons.length];
    next.focus();
    next.click();
    event.preventDefault();
  }
}
