// What it was worth, as a sentence; the daemon does the sums.

import { length, longLength, plural } from "./words.js";

/** Monday's first moment in this place, as Unix seconds. */
export function monday(now) {
  const days = (now.getDay() + 6) % 7;
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).getTime() / 1000;
}

/** "Since Monday: 3 recycles, +41 % tokens, …, 0 failed"; and for each lane what another version did to it. */
export function worthSentence(worth) {
  if (!worth) return "";
  return [recycles(worth), ...(worth.version_changes ?? []).map((change) => `${change.lane}: ${change.text}`)].join(" · ");
}

function recycles(worth) {
  if (!worth.recycles) return "Since Monday: no recycle was needed";
  const gain = worth.gain >= 0.005 ? `+${Math.round(worth.gain * 100)} % tokens` : null;
  return `Since Monday: ${[
    plural(worth.recycles, "recycle"),
    gain,
    worth.downtime_s ? `${worth.downtime_s < 60 ? length(worth.downtime_s) : longLength(worth.downtime_s)} down` : "no downtime",
    `${plural(worth.held, "request")} held`,
    `${worth.failed} failed`,
  ].filter(Boolean).join(", ")}`;
}
