// Asks before anything is done, and stays open to say why it was refused.

import { openDialog } from "./dialogs.js";
import { h, say } from "./dom.js";

const LONGEST_REASON = 500;

/** `act(reason)` runs once the person says yes; its error is shown, and may be tried again. */
export function confirm({ title, means, button, takesReason }, act) {
  return openDialog(title, "confirm", (close) => {
    const reason = h("input", { id: "reason", maxlength: LONGEST_REASON, autocomplete: "off" });
    const refused = h("p", { class: "wrong", role: "alert" });
    const yes = h("button", { class: "primary", type: "submit" }, button);
    const submit = async (event) => {
      event.preventDefault();
      yes.disabled = true;
      try {
        await act(reason.value.trim());
        close();
      } catch (error) {
        say(refused, error.message);
        yes.disabled = false;
      }
    };
    return [
      h("p", {}, means),
      h(
        "form",
        { onsubmit: submit },
        takesReason ? h("label", { for: "reason" }, "Reason, for the record (may be left empty)") : null,
        takesReason ? reason : null,
        refused,
        h("div", { class: "buttons" }, h("button", { type: "button", onclick: close }, "Cancel"), yes),
      ),
    ];
  });
}
