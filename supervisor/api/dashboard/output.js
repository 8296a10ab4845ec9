// The tail of the worker's own output, followed while it is unfolded and looked at.

import { followOutput } from "./api.js";
import { h, say } from "./dom.js";

const LINES = 200;
const MOST_CHARS = 200_000;
const AGAIN_AFTER_MS = 3000;

export class Output {
  #lane = null;
  #following = null;

  constructor() {
    this.text = h("pre", { class: "output", tabindex: 0, role: "region", "aria-label": "Worker output" });
    this.element = h("details", { class: "card", ontoggle: () => this.#follow() }, h("summary", {}, h("h3", {}, "Worker output")), this.text);
    document.addEventListener("visibilitychange", () => this.#follow());
  }

  show(lane) {
    this.#lane = lane;
    this.#follow();
  }

  async #follow() {
    this.#following?.abort();
    if (!this.element.open || document.hidden || !this.#lane) return;
    const following = (this.#following = new AbortController());
    say(this.text, "");
    try {
      await followOutput(this.#lane, LINES, (part) => this.#add(part), following.signal);
    } catch (error) {
      if (!following.signal.aborted) say(this.text, `${error.message}`);
    }
    if (!following.signal.aborted) setTimeout(() => this.#following === following && this.#follow(), AGAIN_AFTER_MS);
  }

  /** Stays at the end if the reader is there. */
  #add(part) {
    const { scrollTop, scrollHeight, clientHeight } = this.text;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < 40;
    this.text.append(part);
    if (this.text.textContent.length > MOST_CHARS) say(this.text, this.text.textContent.slice(-MOST_CHARS / 2));
    if (isAtEnd) this.text.scrollTop = this.text.scrollHeight;
  }
}
