// What the page knows: lanes as of now, measurements and recycles of the last seven days.

import { get } from "./api.js";
import { monday } from "./worth.js";

export const KEPT_S = 7 * 86_400;
const MOST_RECYCLES = 1000;
const WORTH_EVERY_MS = 60_000;

export class Store extends EventTarget {
  fleet = { lanes: [] };
  recycles = [];
  worth = null;
  #worthAt = -Infinity;
  #samples = new Map();

  /** Load the past and the present; throws what the API throws. */
  async load() {
    const since = Math.floor(Date.now() / 1000) - KEPT_S;
    this.#worthAt = -Infinity;
    const [fleet, past, told] = await Promise.all([
      get("/api/lanes"),
      get(`/api/samples?since=${since}`),
      get(`/api/recycles?limit=${MOST_RECYCLES}`),
      this.#askWorth(),
    ]);
    this.#samples.clear();
    for (const sample of past.samples) this.#keep(sample);
    this.recycles = told.recycles;
    this.fleet = fleet;
    this.#changed("all");
  }

  /** Ask again how the lanes are now. */
  async refresh() {
    [this.fleet] = await Promise.all([get("/api/lanes"), this.#askWorth()]);
    this.#changed("lanes");
  }

  lane(name) {
    return this.fleet.lanes.find((lane) => lane.name === name) ?? null;
  }

  /** Measurements of a lane, oldest first; those that count, and those that do not. */
  samplesOf(lane) {
    return this.#samples.get(lane) ?? [];
  }

  recyclesOf(lane) {
    return this.recycles.filter((record) => record.lane === lane);
  }

  addSample(sample) {
    this.#keep(sample);
    this.#changed("samples");
  }

  /** A record that was told; one that is known already is replaced. */
  addRecycle(record) {
    this.#worthAt = -Infinity;
    this.recycles = [...this.recycles.filter((one) => one.id !== record.id), record].slice(-MOST_RECYCLES);
    this.#changed("recycles");
  }

  #keep(sample) {
    if (!this.#samples.has(sample.lane)) this.#samples.set(sample.lane, []);
    const kept = this.#samples.get(sample.lane);
    kept.push(sample);
    const since = Date.now() / 1000 - KEPT_S;
    while (kept.length && kept[0].wall < since) kept.shift();
  }

  /** It changes with each recycle, and slowly with time. */
  async #askWorth() {
    if (performance.now() - this.#worthAt < WORTH_EVERY_MS) return;
    this.#worthAt = performance.now();
    this.worth = await get(`/api/worth?since=${monday(new Date())}`);
  }

  #changed(what) {
    this.dispatchEvent(new CustomEvent("change", { detail: what }));
  }
}
