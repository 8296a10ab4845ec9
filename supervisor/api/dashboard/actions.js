// What a person may ask of a lane. Each is confirmed, and says beforehand what it does to clients.

import { post } from "./api.js";
import { confirm } from "./confirm.js";
import { h, set } from "./dom.js";
import { SERVES } from "./lane-facts.js";
import { tell } from "./tell.js";

const WITHOUT = ["stopped", "unloaded", "failed"];

const ACTIONS = {
  probe: {
    title: "Probe", may: (state) => SERVES.includes(state), takesReason: false,
    means: "Measures the decode rate now. It waits for an idle moment, and yields to clients.",
  },
  recycle: {
    title: "Recycle", may: (state) => [...SERVES, "drained"].includes(state), takesReason: true,
    means: "Replaces the worker. Answers in flight are finished first; new requests wait meanwhile.",
  },
  drain: {
    title: "Drain", may: (state) => !["drained", "stopping", ...WITHOUT].includes(state), takesReason: true,
    means: "Lets answers in flight finish and refuses new requests, until it is resumed. Kept over restarts.",
  },
  resume: {
    title: "Resume", may: (state) => state === "drained", takesReason: false, means: "Takes requests again.",
  },
  start: { title: "Start", may: (state) => WITHOUT.includes(state), takesReason: false, means: "Starts the worker." },
  stop: {
    title: "Stop", may: (state) => !["stopped", "stopping"].includes(state), takesReason: true,
    means: "Lets answers in flight finish, then ends the worker. New requests are refused until it is started.",
  },
};
const INSTEAD = { resume: "drain", drain: "resume", start: "stop", stop: "start" };

export class Actions {
  #lane = null;
  #buttons = new Map();

  constructor() {
    this.element = h("div", { class: "actions", role: "group", "aria-label": "Ask the lane" });
    for (const [what, action] of Object.entries(ACTIONS)) {
      const button = h("button", { type: "button", onclick: () => this.#ask(what) }, action.title);
      this.#buttons.set(what, button);
      this.element.append(button);
    }
  }

  /** Of drain and resume, and of start and stop, one is shown; what means nothing now cannot be pressed. */
  draw(lane) {
    this.#lane = lane;
    for (const [what, button] of this.#buttons) {
      const may = ACTIONS[what].may(lane.state);
      const isSecond = what === "resume" || what === "start";
      button.hidden = isSecond ? !may : Boolean(INSTEAD[what] && ACTIONS[INSTEAD[what]].may(lane.state));
      set(button, "disabled", !may);
    }
  }

  async #ask(what) {
    const { name } = this.#lane;
    const { title, means, takesReason } = ACTIONS[what];
    await confirm({ title: `${title} ${name}?`, means, button: title, takesReason }, async (reason) => {
      await post(`/api/lanes/${encodeURIComponent(name)}/${what}`, reason ? { reason } : {});
      tell(`Asked: ${what} ${name}.`);
    });
  }
}
