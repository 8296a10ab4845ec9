// uPlot, dressed: the band of a fresh worker, dots for runs, a line for their median, a rule for each recycle.

const HEIGHT = 260;
const ROOM_FOR_A_CLOCK = 24; // half a label: the last one stands at the edge

export class Chart {
  #plot = null;
  #shown = null;

  /** `point(index | null)`: the pointer is at a run; `placed(plot)`: scales have changed. */
  constructor(place, point, placed) {
    this.place = place;
    this.point = point;
    this.placed = placed;
    new ResizeObserver(() => this.#resize()).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#again());
  }

  /** {times, rates, medians, span, fresh, below, marks} */
  draw(shown) {
    this.#shown = shown;
    if (!this.#plot) this.#make();
    this.#plot.setData([shown.times, shown.medians, shown.rates]);
  }

  #make() {
    const colours = readColours(this.place);
    this.#plot = new globalThis.uPlot(options(this, colours, this.place.clientWidth || 600), [[], [], []], this.place);
  }

  #again() {
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#shown) this.draw(this.#shown);
  }

  #resize() {
    const width = this.place.clientWidth;
    if (this.#plot && width && width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT });
  }

  xRange() {
    return this.#shown?.span ?? [0, 1];
  }

  /** From 0, so that a fall looks as large as it is. */
  yRange() {
    const { rates = [], fresh = 0 } = this.#shown ?? {};
    return [0, Math.max(1, fresh ?? 0, ...rates.map((rate) => rate ?? 0)) * 1.12];
  }

  drawBelow(plot, colours) {
    const { fresh, below, marks = [] } = this.#shown ?? {};
    const { ctx, bbox } = plot;
    ctx.save();
    if (fresh && below) {
      const [top, middle, bottom] = [fresh / below, fresh, fresh * below].map((value) => plot.valToPos(value, "y", true));
      ctx.fillStyle = colours.band;
      ctx.fillRect(bbox.left, Math.max(bbox.top, top), bbox.width, bottom - Math.max(bbox.top, top));
      rule(ctx, colours.fresh, [], bbox.left, middle, bbox.left + bbox.width, middle);
    }
    for (const mark of marks) {
      const x = plot.valToPos(mark, "x", true);
      rule(ctx, colours.mark, [4, 4], x, bbox.top, x, bbox.top + bbox.height);
    }
    ctx.restore();
  }
}

/** A line for each worker: uPlot's own would leave a sliver of the step from one to the next. */
function drawMedians(plot, colours) {
  const [times, medians] = plot.data;
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = colours.ink;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.lineJoin = "round";
  ctx.beginPath();
  medians.forEach((median, at) => {
    if (median === null) return;
    const isFirst = at === 0 || medians[at - 1] === null;
    ctx[isFirst ? "moveTo" : "lineTo"](plot.valToPos(times[at], "x", true), plot.valToPos(median, "y", true));
  });
  ctx.stroke();
  ctx.restore();
}

function rule(ctx, colour, dash, x0, y0, x1, y1) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

function readColours(place) {
  const style = getComputedStyle(place);
  return Object.fromEntries(
    ["ink", "dot", "band", "fresh", "mark", "grid", "quiet"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
}

function options(chart, colours, width) {
  const axis = {
    stroke: colours.quiet, font: "11px system-ui, sans-serif",
    grid: { stroke: colours.grid, width: 1 }, ticks: { show: false },
  };
  return {
    width, height: HEIGHT, padding: [22, ROOM_FOR_A_CLOCK, 0, 0], legend: { show: false },
    scales: { x: { time: true, range: () => chart.xRange() }, y: { range: () => chart.yRange() } },
    axes: [{ ...axis, grid: { show: false }, values: clockTicks, size: 30, space: 90 }, { ...axis, size: 40 }],
    series: [
      {},
      { stroke: colours.ink, paths: () => null, points: { show: false } },
      { stroke: "transparent", width: 0, points: { show: true, size: 4, width: 0, fill: colours.dot } },
    ],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
    hooks: {
      drawClear: [(plot) => chart.drawBelow(plot, colours)],
      draw: [(plot) => drawMedians(plot, colours), (plot) => chart.placed(plot)],
      setCursor: [(plot) => chart.point(plot.cursor.left < 0 ? null : nearest(plot))],
    },
  };
}

const nearest = (plot) => (plot.data[2][plot.cursor.idx] === null ? null : plot.cursor.idx);

/** 24-hour clock; the day where it changes. */
function clockTicks(_plot, moments, _axis, _space, step) {
  return moments.map((moment) => {
    const at = new Date(moment * 1000);
    const isMidnight = at.getHours() === 0 && at.getMinutes() === 0;
    if (isMidnight || step >= 86_400) return at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
    const second = step < 60 ? { second: "2-digit" } : {};
    return at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...second });
  });
}
