// Puts the page together: log in if need be, then lanes on one side and the chosen one on the other.

import { NotLoggedIn } from "./api.js";
import { byId, say } from "./dom.js";
import { LaneDetail } from "./lane-detail.js";
import { LaneList } from "./lane-list.js";
import { Live } from "./live.js";
import { showLogin } from "./login.js";
import { Store } from "./store.js";
import { worthSentence } from "./worth.js";

const store = new Store();
const list = new LaneList(byId("lanes"), store, choose);
const detail = new LaneDetail(byId("detail"), store);
const live = new Live(store, tellLine);

store.addEventListener("change", (event) => draw(event.detail));
window.addEventListener("hashchange", () => draw("all"));

function choose(name) {
  location.hash = encodeURIComponent(name);
}

/** The lane in the address, else the first. */
function chosen() {
  return store.lane(nameInAddress())?.name ?? store.fleet.lanes[0]?.name ?? null;
}

function nameInAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

function draw(what) {
  const name = chosen();
  list.draw(name);
  detail.draw(name, what);
  say(byId("worth"), worthSentence(store.worth));
  const trouble = [store.fleet.journal_trouble, store.fleet.history_trouble].filter(Boolean).join(" · ");
  byId("trouble").hidden = !trouble;
  say(byId("trouble"), trouble);
  document.title = titleOf(store.fleet.lanes);
}

function titleOf(lanes) {
  const ill = lanes.find((lane) => ["failed", "blocked", "backing_off", "suspect"].includes(lane.state));
  return ill ? `${ill.name} ${ill.state.replace("_", " ")} · freshlane` : "freshlane";
}

function tellLine(isLive, error) {
  if (error instanceof NotLoggedIn) {
    logIn();
    return;
  }
  byId("line").dataset.live = isLive;
  say(byId("line"), isLive ? `live · ${store.fleet.version ?? ""}` : "no connection, trying again");
}

function logIn() {
  live.stop();
  byId("view").hidden = true;
  byId("login").hidden = false;
  showLogin(byId("login"), begin);
}

async function begin() {
  try {
    await store.load();
  } catch (error) {
    if (error instanceof NotLoggedIn) return logIn();
    tellLine(false, error);
  }
  byId("login").hidden = true;
  byId("view").hidden = false;
  live.start();
}

begin();
