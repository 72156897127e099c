// A design is a set of views: the granularities at which a row may be reported.
//
// A row is described by axes: its attributes, and for some designs values that were rounded to two ends. A view fixes
// one level of every axis's tree; its cells are the combinations of nodes on these levels. A group holds all
// combinations of levels of its axes, or only the finest. A part of a design is reported once per row.
import { fold } from "./hashing.js";

export const NUMBERED_CELLS = 2 ** 32;

/** A tree over the values 0..size−1: level 0 is one cell, each level below cuts every cell into `fanout` parts. */
function tree(size, fanout) {
  let levels = 1;
  for (let reach = 1; reach < size; reach *= fanout) levels++;
  const cell = (level, value) => Math.floor(value / fanout ** (levels - 1 - level));
  return { levels, cell, cells: (level) => cell(level, size - 1) + 1 };
}

// Axes: what a view can show about a row, as a number 0..size−1. All coins that an axis may need are tossed, whatever
// the row is. A row is a list of positions; its weight is the chance of another coin.

const axis = (size, fanout, coordinate) => ({ ...tree(size, fanout), coordinate });

/** 1 with chance part/whole, else 0. */
const coin = async (draws, part, whole) => Number(await draws.secretCoin([BigInt(part), BigInt(whole)]));

export const valueAxis = (attribute, size, fanout) => axis(size, fanout, (row) => row[attribute]);

/** The value, rounded to the first or the last of its domain. */
export const roundedAxis = (attribute, size) =>
  axis(2, 2, (row, weight, draws) => coin(draws, row[attribute], size - 1));

/** How many rows there were, rounded to none or all. */
export const weightAxis = () => axis(2, 2, (row, weight, draws) => coin(draws, ...weight));

export const weightAndRoundedAxis = (attribute, size) =>
  axis(4, 4, async (row, weight, draws) => {
    const up = await coin(draws, row[attribute], size - 1);
    return 2 * (await coin(draws, ...weight)) + up;
  });

/** The value and how it was rounded, on one axis twice as long. */
export const embeddedAxis = (attribute, size, fanout) =>
  axis(2 * size, fanout, async (row, weight, draws) => {
    const value = row[attribute];
    return (await coin(draws, value, size - 1)) ? size + value : size - 1 - value;
  });

/** Which of the cells that begin at these places. */
export const cellsAxis = (attribute, places) =>
  axis(places.length, Math.max(places.length, 2), (row) => lastNotAbove(row[attribute], places));

/** The place before or after the value. */
export const pointsAxis = (attribute, places) =>
  axis(places.length, places.length, async (row, weight, draws) => {
    const value = row[attribute],
      index = Math.min(lastNotAbove(value, places), places.length - 2),
      first = places[index];
    return index + (await coin(draws, value - first, places[index + 1] - first));
  });

function lastNotAbove(value, places) {
  let [index, end] = [0, places.length];
  while (end - index > 1) {
    const middle = (index + end) >> 1;
    if (places[middle] <= value) index = middle;
    else end = middle;
  }
  return index;
}

/** Views over the same axes. `chance` says how likely the group is, relative to the others of its part. */
export function group(axes, finest, chance = 1) {
  /** How many cells a view has; beyond 2^53 approximately. */
  const cells = (view) => axes.reduce((count, axis, i) => count * axis.cells(view[i]), 1);
  return {
    axes,
    chance,
    cells,
    views: finest ? 1 : axes.reduce((count, { levels }) => count * levels, 1),

    /** The levels of the `local`-th view; the last axis changes fastest. */
    choice(local) {
      const view = [];
      for (const { levels } of axes.toReversed()) {
        view.unshift(finest ? levels - 1 : local % levels);
        local = Math.floor(local / levels);
      }
      return view;
    },

    /** The number of a cell: mixed radix, or folded into 32 bits where there are too many cells. */
    number(view, coordinates) {
      const nodes = axes.map(({ cell }, i) => cell(view[i], coordinates[i]));
      if (cells(view) > NUMBERED_CELLS) return fold(nodes);
      return nodes.reduce((number, node, i) => number * axes[i].cells(view[i]) + node, 0);
    },
  };
}
