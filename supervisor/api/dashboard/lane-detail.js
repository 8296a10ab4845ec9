// The chosen lane: how it is, what comes next, what it did, and what a person may ask of it.

import { Actions } from "./actions.js";
import { h, say, set } from "./dom.js";
import { Facts } from "./facts.js";
import { saidOf, toneOf, whyOf } from "./lane-facts.js";
import { Output } from "./output.js";
import { Recycles } from "./recycles.js";
import { showRecord } from "./record.js";
import { Speed } from "./speed.js";
import { speak } from "./tell.js";
import { ago, clock, spaced } from "./words.js";

export class LaneDetail {
  #name = null;

  constructor(place, store) {
    this.store = store;
    this.heading = h("h2", { class: "title" });
    this.state = h("span", { class: "state large" });
    this.since = h("span", { class: "quiet" });
    this.reason = h("p", { class: "reason" });
    this.next = h("p", { class: "next" });
    this.said = h("p", { class: "next" });
    this.actions = new Actions();
    this.facts = new Facts();
    this.speed = new Speed(showRecord);
    this.recycles = new Recycles(showRecord);
    this.output = new Output();
    this.empty = h("p", { class: "quiet" }, "No lane yet. Name one in lanes.yaml, and `freshlane reload`.");
    this.body = h(
      "article",
      { "aria-label": "Lane", hidden: true },
      h(
        "div",
        { class: "head" },
        h("div", { class: "who" }, this.heading, this.state, this.since),
        this.actions.element,
      ),
      this.reason,
      this.next,
      this.said,
      this.facts.element,
      this.speed.element,
      this.recycles.element,
      this.output.element,
    );
    place.replaceChildren(this.empty, this.body);
  }

  /** Show the lane `name`; `what` has changed. */
  draw(name, what) {
    const lane = name === null ? null : this.store.lane(name);
    this.body.hidden = !lane;
    this.empty.hidden = Boolean(lane);
    if (!lane) return;
    const isOther = name !== this.#name;
    this.#name = name;
    this.#drawState(lane, isOther);
    this.facts.draw(lane);
    if (isOther || what !== "lanes") {
      const recycles = this.store.recyclesOf(name);
      this.speed.draw(lane, this.store.samplesOf(name), recycles);
      this.recycles.draw(recycles);
    }
    if (isOther) this.output.show(name);
  }

  #drawState(lane, isOther) {
    say(this.heading, lane.name);
    const state = spaced(lane.state);
    if (!isOther && this.state.textContent !== state) speak(`${lane.name} is ${state}: ${lane.reason}`);
    say(this.state, state);
    set(this.state, "data-tone", toneOf(lane));
    say(this.since, ago(lane.since));
    set(this.since, "title", `since ${clock(lane.since)}`);
    say(this.reason, whyOf(lane));
    say(this.next, lane.next_action ? `Next: ${lane.next_action}` : "");
    say(this.said, saidOf(lane));
    this.actions.draw(lane);
  }
}
