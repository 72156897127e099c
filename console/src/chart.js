// Charts that always show intervals: bars with whiskers, points with bars, lines with a band. Drawn by uPlot on a canvas.
import uPlot from "uplot";
import { h } from "./dom.js";

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function chart({ label, x, names, value, low, high, kind, height = 280, under, across, fromZero, onselect }) {
  const box = h("div", { class: "chart", role: "img", "aria-label": label });
  const places = names ? names.map((_, at) => at) : x;
  const ink = style("--ink"), faint = style("--line"), accent = style("--accent"), band = style("--band");
  const finite = [...low, ...high, ...value, ...(kind === "bars" || fromZero ? [0] : [])].filter((number) => Number.isFinite(number));
  const bottom = Math.min(...finite), top = Math.max(...finite, ...(fromZero ? [1] : [])), room = (top - bottom || 1) * 0.06;
  const axis = { stroke: ink, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint, width: 1 }, font: "12px system-ui, sans-serif" };
  const short = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);
  const options = {
    width: 600, height, legend: { show: false },
    cursor: { drag: { x: Boolean(onselect), y: false, setScale: false }, points: { show: false } },
    scales: {
      x: { time: false, range: names ? () => [-0.6, places.length - 0.4] : across && (() => across) },
      y: { range: () => [bottom - (bottom < 0 || kind !== "bars" ? room : 0), top + room] },
    },
    axes: [
      { ...axis, ...(under && { label: under, labelSize: 20, labelFont: axis.font }), ...(names && { size: 34, grid: { show: false } }), ...(names && { splits: (plot) => thinned(places, Math.max(2, Math.floor(plot.width / 110))), values: (_, at) => at.map((place) => short(String(names[place] ?? ""))) }) },
      { ...axis, size: 64, values: (_, at) => at.map((number) => number.toLocaleString("en", { maximumSignificantDigits: 4 })) },
    ],
    series: [
      {},
      { stroke: "transparent", points: { show: false } },
      { stroke: "transparent", points: { show: false } },
      { stroke: accent, width: kind === "line" ? 2 : 1, fill: kind === "bars" ? band : undefined,
        points: { show: kind === "points", size: 8, fill: accent },
        paths: kind === "bars" ? uPlot.paths.bars({ size: [0.6, 60] }) : kind === "points" ? () => null : undefined },
    ],
    bands: kind === "line" ? [{ series: [2, 1], fill: band }] : [],
    hooks: {
      draw: [(plot) => kind !== "line" && whiskers(plot, places, low, high, ink)],
      setSelect: [(plot) => onselect && plot.select.width > 4 && onselect(plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x"))],
    },
  };
  const plot = new uPlot(options, [places, low, high, value], box);
  const fit = new ResizeObserver(() => plot.setSize({ width: Math.max(box.clientWidth, 200), height }));
  fit.observe(box);
  box.picture = () => new Promise((done) => pictured(plot).toBlob(done, "image/png"));
  return box;
}

const thinned = (places, most) => places.filter((_, at) => at % Math.max(1, Math.ceil(places.length / most)) === 0);

function whiskers(plot, places, low, high, ink) {
  const { ctx } = plot, half = Math.min(6, 200 / places.length) * devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.beginPath();
  places.forEach((place, at) => {
    if (low[at] == null || high[at] == null) return;
    const x = plot.valToPos(place, "x", true), from = plot.valToPos(low[at], "y", true), to = plot.valToPos(high[at], "y", true);
    ctx.moveTo(x, from); ctx.lineTo(x, to);
    for (const y of [from, to]) { ctx.moveTo(x - half, y); ctx.lineTo(x + half, y); }
  });
  ctx.stroke();
  ctx.restore();
}

function pictured(plot) {
  const canvas = h("canvas", { width: plot.ctx.canvas.width, height: plot.ctx.canvas.height });
  const context = canvas.getContext("2d");
  context.fillStyle = style("--paper");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(plot.ctx.canvas, 0, 0);
  return canvas;
}
