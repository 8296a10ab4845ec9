// A key for a cookie that scripts cannot read; the page itself never keeps the key.

import { post } from "./api.js";
import { h, say } from "./dom.js";

/** Ask for the key; `then` once it was right. */
export function showLogin(place, then) {
  const key = h("input", { type: "password", id: "key", autocomplete: "current-password", required: true });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const form = h(
    "form",
    { class: "login", onsubmit: submit },
    h("h2", {}, "Log in"),
    h("label", { for: "key" }, "Admin key"),
    key,
    h("button", { class: "primary", type: "submit" }, "Log in"),
    wrong,
    h("p", { class: "quiet" }, "It is one of admin_keys (or api_keys) in lanes.yaml."),
  );
  place.replaceChildren(form);
  key.focus();

  async function submit(event) {
    event.preventDefault();
    try {
      await post("/api/session", { key: key.value });
      await then();
    } catch (error) {
      say(wrong, error.message);
      key.select();
    }
  }
}
