// The last runs as a small line; decoration, since the numbers stand beside it.

const NS = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, RUNS] = [96, 22, 40];

export function sparkline() {
  const element = document.createElementNS(NS, "svg");
  const line = document.createElementNS(NS, "polyline");
  element.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  element.setAttribute("class", "spark");
  element.setAttribute("aria-hidden", "true");
  element.append(line);
  return { element, draw: (samples, fresh) => line.setAttribute("points", points(samples, fresh)) };
}

function points(samples, fresh) {
  const clean = samples.filter((sample) => sample.decode_tok_s > 0 && !sample.model);
  const smallest = Math.min(...clean.map((sample) => sample.prompt_tokens));
  const runs = clean.filter((sample) => sample.prompt_tokens === smallest).slice(-RUNS);
  const top = Math.max(fresh ?? 0, ...runs.map((run) => run.decode_tok_s)) * 1.05;
  const step = WIDTH / Math.max(1, runs.length - 1);
  return runs.map((run, at) => `${(at * step).toFixed(1)},${(HEIGHT * (1 - run.decode_tok_s / top)).toFixed(1)}`).join(" ");
}
