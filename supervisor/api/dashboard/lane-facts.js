// What a lane's document says, read once for all who show it.

const TONES = {
  serving: "good", suspect: "warn", backing_off: "warn", blocked: "bad", failed: "bad",
  stopped: "quiet", unloaded: "quiet", drained: "quiet",
};

/** States in which clients are served. */
export const SERVES = ["serving", "suspect"];
const HOST_SLOW = "host_slow: ";

/** The tone of a state; one without is on its way to one of these. */
export const toneOf = (lane) => TONES[lane.state] ?? "busy";

/** Tokens/s now: the verdict's, else that of the newest clean run. */
export function speedOf(lane) {
  return lane.verdict?.decode_tok_s ?? lane.last_probe?.decode_tok_s ?? null;
}

/** The worker's speed over a fresh one's. */
export function ratioOf(lane) {
  if (typeof lane.verdict?.ratio === "number") return lane.verdict.ratio;
  const [speed, fresh] = [speedOf(lane), lane.baseline?.decode_tok_s];
  return speed && fresh ? speed / fresh : null;
}

/** Whether the machine is slow, and the worker therefore not judged. */
export const isHostSlow = (lane) => (lane.verdict?.reason ?? "").startsWith(HOST_SLOW);

function unknownBecause(lane) {
  const { reason } = lane.verdict;
  return isHostSlow(lane) ? `the host is slow: ${reason.slice(HOST_SLOW.length)}` : `speed unknown: ${reason}`;
}

/** The verdict's words where they say more than the state does. */
export function whyOf(lane) {
  const said = [lane.reason];
  const status = lane.verdict?.status;
  if (lane.verdict?.reason && (status === "suspect" || status === "degraded")) said.push(lane.verdict.reason);
  if (status === "unknown" && SERVES.includes(lane.state)) said.push(unknownBecause(lane));
  return [...new Set(said.filter(Boolean))].join("; ");
}

/** What the worker says of itself, and how its further models are. */
export function saidOf(lane) {
  const said = lane.said?.length ? [`The server says: ${lane.said.join("; ")}`] : [];
  const models = Object.entries(lane.models ?? {}).map(([name, { verdict }]) => `${name} is ${verdict.status}`);
  return [...said, ...models].join("; ");
}

/** The prompt sizes that were, or will be, measured, smallest first. */
export function sizesOf(lane, samples) {
  const sizes = new Set([...Object.keys(lane.baseline?.by_prompt_tokens ?? {}).map(Number)]);
  for (const sample of samples) sizes.add(sample.prompt_tokens);
  return [...sizes].sort((a, b) => a - b);
}
