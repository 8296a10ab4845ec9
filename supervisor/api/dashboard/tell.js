// What has just happened: shown for a moment where a person asked for it, and only read aloud where it came by itself.

import { byId, say } from "./dom.js";

const SHOWN_MS = 6000;
let hiding = null;

/** The answer to something that a person asked for. */
export function tell(text) {
  say(byId("told"), text);
  clearTimeout(hiding);
  hiding = setTimeout(() => say(byId("told"), ""), SHOWN_MS);
}

/** For a screen reader: what others can see anyway. */
export function speak(text) {
  say(byId("spoken"), text);
}
