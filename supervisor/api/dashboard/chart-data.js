// Measurements as columns for the chart. No drawing here.

const AROUND = 2;

/** [from, to] in Unix seconds: the span asked for, or less where the past is shorter. */
export function spanOf(samples, recycles, wanted, now) {
  const firsts = [samples[0]?.wall, Date.parse(recycles[0]?.time) / 1000].filter(Number.isFinite);
  const first = firsts.length ? Math.min(...firsts) : now - wanted;
  const from = Math.max(now - wanted, first);
  return [from - Math.max(1, (now - from) * 0.02), now];
}

/** {times, rates, medians}: the clean runs of one prompt size; a gap (null) where one worker followed another. */
export function series(samples, size, [from]) {
  const runs = samples.filter((one) => !one.model && one.prompt_tokens === size && one.void === null && !one.is_warmup && one.wall >= from);
  const spells = spellsOf(runs);
  const found = { times: [], rates: [], medians: [] };
  for (const spell of spells) {
    if (found.times.length) push(found, (found.times.at(-1) + spell[0].wall) / 2, null, null);
    spell.forEach((run, at) => push(found, run.wall, run.decode_tok_s, medianAround(spell, at)));
  }
  return found;
}

/** The runs of each worker. */
function spellsOf(runs) {
  const spells = [];
  for (const run of runs) {
    const before = spells.at(-1)?.at(-1);
    const isSameWorker = before && before.generation === run.generation && before.worker_age_s <= run.worker_age_s;
    if (isSameWorker) spells.at(-1).push(run);
    else spells.push([run]);
  }
  return spells;
}

function push(found, time, rate, median) {
  found.times.push(time);
  found.rates.push(rate);
  found.medians.push(median);
}

function medianAround(runs, at) {
  const near = runs.slice(Math.max(0, at - AROUND), at + AROUND + 1).map((run) => run.decode_tok_s).sort((a, b) => a - b);
  const middle = (near.length - 1) / 2;
  return (near[Math.floor(middle)] + near[Math.ceil(middle)]) / 2;
}
