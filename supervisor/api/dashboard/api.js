// All that the page asks of its daemon.

export class NotLoggedIn extends Error {}

/** JSON of a GET. */
export const get = (path) => ask("GET", path);

/** JSON of a POST with a JSON body. */
export const post = (path, body = {}) => ask("POST", path, body);

const PATIENCE_MS = 15_000;

async function ask(method, path, body) {
  const answer = await fetch(path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  if (answer.status === 401) throw new NotLoggedIn((await messageOf(answer)) ?? "A key is needed.");
  if (!answer.ok) throw new Error((await messageOf(answer)) ?? `${path} answered ${answer.status}`);
  return answer.json();
}

async function messageOf(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return null;
  }
}

/** Give `take` each part of a lane's output, the last lines first, until `signal` is aborted. */
export async function followOutput(lane, tail, take, signal) {
  const path = `/api/lanes/${encodeURIComponent(lane)}/logs?tail=${tail}&follow=true`;
  const answer = await fetch(path, { signal });
  if (!answer.ok) throw new Error(`the output is not to be had: ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) take(part.value);
}
