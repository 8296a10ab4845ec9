// All lanes at a glance; one is chosen.

import { h, say, set } from "./dom.js";
import { isHostSlow, ratioOf, SERVES, speedOf, toneOf } from "./lane-facts.js";
import { sparkline } from "./sparkline.js";
import { rate, share, spaced } from "./words.js";

export class LaneList {
  #rows = new Map();

  constructor(place, store, choose) {
    this.place = place;
    this.store = store;
    this.choose = choose;
  }

  draw(chosen) {
    const lanes = this.store.fleet.lanes;
    const names = lanes.map((lane) => lane.name);
    if (names.join("\n") !== [...this.#rows.keys()].join("\n")) this.#build(names);
    for (const lane of lanes) this.#update(this.#rows.get(lane.name), lane, lane.name === chosen);
  }

  #build(names) {
    this.#rows = new Map(names.map((name) => [name, this.#row(name)]));
    this.place.replaceChildren(...[...this.#rows.values()].map((row) => row.button));
  }

  #row(name) {
    const row = { state: h("span", { class: "state" }), speed: h("span", { class: "speed" }) };
    row.share = h("span", { class: "quiet" });
    row.line = sparkline();
    row.button = h(
      "button",
      { class: "lane", type: "button", onclick: () => this.choose(name) },
      h("span", { class: "name", title: name }, name),
      row.state,
      h("span", { class: "numbers" }, row.speed, " ", row.share),
      row.line.element,
    );
    return row;
  }

  #update(row, lane, isChosen) {
    set(row.button, "aria-current", isChosen ? "true" : null);
    set(row.state, "data-tone", toneOf(lane));
    say(row.state, spaced(lane.state));
    const [speed, ratio] = [speedOf(lane), ratioOf(lane)];
    say(row.speed, speed === null ? "" : `${rate(speed)} tok/s`);
    say(row.share, speed === null ? briefly(lane) : ratio === null ? "" : share(ratio));
    row.line.draw(this.store.samplesOf(lane.name), lane.baseline?.decode_tok_s);
  }
}

/** Why there is no speed, in a word or two; the chosen lane says it in full. */
function briefly(lane) {
  if (isHostSlow(lane)) return "the host is slow";
  return SERVES.includes(lane.state) ? "not measured yet" : "";
}
