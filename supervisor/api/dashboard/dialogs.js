// One modal dialog at a time, from the browser itself: focus stays inside, Escape closes, focus goes back.

import { h } from "./dom.js";

/** Show `children` under `title`; comes back when it is closed. `close()` closes it. */
export function openDialog(title, kind, build) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const dialog = h("dialog", { class: kind, "aria-labelledby": "dialog-title" });
  const close = () => dialog.close();
  dialog.append(heading, ...build(close).filter(Boolean));
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  document.body.append(dialog);
  return new Promise((closed) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      closed();
    });
    dialog.showModal();
    dialog.scrollTop = 0; // the button that has the focus may stand below the first screen
  });
}
