// Keeps the store true: events as they happen, and a look every two seconds for what has no event (in flight, memory).
// A page that nobody looks at asks for nothing.

const LOOK_EVERY_MS = 2000;

export class Live {
  #source = null;
  #timer = null;
  #isAsking = false;

  /** `tell(isLive, error)` hears whether the page is up to date; an error is a failed look. */
  constructor(store, tell) {
    this.store = store;
    this.tell = tell;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#pause() : this.start()));
  }

  start() {
    this.#pause();
    if (document.hidden) return;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#source = new EventSource("/api/events");
    this.#source.onopen = () => this.#reload();
    this.#source.onerror = () => this.tell(false, null);
    const on = (kind, take) => this.#source.addEventListener(kind, (event) => take(JSON.parse(event.data)));
    on("state", () => this.#look());
    on("verdict", () => this.#look());
    on("sample", (sample) => this.store.addSample(sample));
    on("recycle", (record) => this.store.addRecycle(record));
    on("lagged", () => this.#reload());
  }

  /** Stop asking; `start` takes it up again. */
  stop() {
    this.#pause();
  }

  #pause() {
    clearInterval(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #reload() {
    return this.#try(() => this.store.load());
  }

  #look() {
    return this.#try(() => this.store.refresh());
  }

  async #try(ask) {
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      await ask();
      this.tell(true, null);
    } catch (error) {
      this.tell(false, error);
    } finally {
      this.#isAsking = false;
    }
  }
}
