// What it was worth: recycles counted, and the speed they kept, from measurements alone.

import { length, plural } from "./words.js";

const LONGEST_SPELL_S = 1800;
const BROUGHT = new Set(["cured", "partial", "replaced"]);

/** Monday's first moment in this place, as Unix milliseconds. */
export function monday(now) {
  const days = (now.getDay() + 6) % 7;
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).getTime();
}

/**
 * {recycles, downtimeS, held, failed, gain} since a Unix time. `gain`: tokens at the measured speeds over those at the
 * speed that each recycled worker had last, less one, in the lanes that were recycled; null while nothing tells. A
 * worker that is not recycled goes on ageing, so this errs on the low side.
 */
export function worth(recycles, samplesOf, since) {
  const counted = recycles.filter((record) => Date.parse(record.time) / 1000 >= since && record.outcome !== "aborted");
  const sum = (pick) => counted.reduce((total, record) => total + (pick(record) || 0), 0);
  return {
    recycles: counted.length,
    downtimeS: sum((record) => record.downtime_s),
    held: sum((record) => record.requests?.held),
    failed: sum((record) => record.requests?.failed),
    gain: gainOf(counted, samplesOf, since),
  };
}

function gainOf(records, samplesOf, since) {
  let had = 0;
  let without = 0;
  for (const lane of new Set(records.map((record) => record.lane))) {
    const floors = records.filter((record) => record.lane === lane && brought(record));
    const runs = cleanOfSmallestSize(samplesOf(lane)).filter((run) => run.wall >= since);
    runs.forEach((run, at) => {
      const floor = floors.findLast((record) => Date.parse(record.time) / 1000 <= run.wall)?.before.decode_tok_s ?? Infinity;
      const spell = Math.min(LONGEST_SPELL_S, (runs[at + 1]?.wall ?? run.wall) - run.wall);
      had += run.decode_tok_s * spell;
      without += Math.min(floor, run.decode_tok_s) * spell;
    });
  }
  return without > 0 ? had / without - 1 : null;
}

const brought = (record) => BROUGHT.has(record.outcome) && record.before?.decode_tok_s && record.before.ratio < 1;

function cleanOfSmallestSize(samples) {
  const clean = samples.filter((sample) => sample.void === null && sample.decode_tok_s > 0 && !sample.is_warmup);
  const smallest = Math.min(...clean.map((sample) => sample.prompt_tokens));
  return clean.filter((sample) => sample.prompt_tokens === smallest);
}

/** "Since Monday: 3 recycles, +41 % tokens, 212 s down, 5 requests held, 0 failed" */
export function worthSentence(found, since, now = Date.now()) {
  const day = now - since < 86_400_000 ? "Today" : "Since Monday";
  if (!found.recycles) return `${day}: no recycle was needed`;
  const gain = found.gain === null || found.gain < 0.005 ? null : `+${Math.round(found.gain * 100)} % tokens`;
  return `${day}: ${[
    plural(found.recycles, "recycle"),
    gain,
    found.downtimeS ? `${length(found.downtimeS)} down` : "no downtime",
    `${plural(found.held, "request")} held`,
    `${found.failed} failed`,
  ].filter(Boolean).join(", ")}`;
}
