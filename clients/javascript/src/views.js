// A design is a set of views: the granularities at which a row may be reported.
//
// A row is described by axes: its attributes, and for some designs values that were rounded to two ends. A view fixes
// one level of every axis's tree; its cells are the combinations of nodes on these levels. A group holds all
// combinations of levels of its axes, or only the finest. A part of a design is reported once per row.
import { fold } from "./hashing.js";

export const NUMBERED_CELLS = 2 ** 32;

/** A tree over the values 0..size−1: level 0 is one cell, each level below cuts every cell into `fanout` parts. */
export class Tree {
  constructor(size, fanout) {
    this.size = size;
    this.fanout = fanout;
    this.levels = 1;
    for (let reach = 1; reach < size; reach *= fanout) this.levels++;
  }
  width(level) {
    return this.fanout ** (this.levels - 1 - level);
  }
  cells(level) {
    return Math.ceil(this.size / this.width(level));
  }
  cell(level, value) {
    return Math.floor(value / this.width(level));
  }
}

/** One thing a view can show about a row, as a number 0..size−1. `places` are where cells start, or points to round to. */
export class Axis {
  constructor(kind, tree, attribute = -1, places = null) {
    Object.assign(this, { kind, tree, attribute, places });
    this.roundsValue = ["rounded", "embedded", "weight and rounded", "points"].includes(kind);
    this.roundsWeight = kind === "weight" || kind === "weight and rounded";
  }

  /** Where the axis sees a value, given by its position, and the chance of the attribute's coin. */
  located(value, size) {
    if (!this.places) return [value, [BigInt(value), BigInt(size - 1)]];
    let [index, end] = [0, this.places.length]; // the last that is not above the value
    while (end - index > 1) {
      const middle = (index + end) >> 1;
      if (this.places[middle] <= value) index = middle;
      else end = middle;
    }
    if (this.kind === "cells") return [index, [0n, 1n]];
    index = Math.min(index, this.places.length - 2);
    const [first, second] = [this.places[index], this.places[index + 1]];
    return [index, [BigInt(value - first), BigInt(second - first)]];
  }

  /** Where a row lies on the axis. All coins that the axis may need are tossed, whatever the row is. */
  async coordinate(row, domains, weight, draws) {
    const [value, chance] =
      this.attribute < 0 ? [0, [0n, 1n]] : this.located(row[this.attribute], domains[this.attribute].size);
    const up = this.roundsValue ? Number(await draws.secretCoin(chance)) : 0;
    const heavy = this.roundsWeight ? Number(await draws.secretCoin(weight)) : 0;
    if (this.kind === "value" || this.kind === "cells") return value;
    if (this.kind === "points") return value + up;
    if (this.kind === "embedded") return this.tree.size / 2 - 1 - value + (2 * value + 1) * up;
    return this.kind === "weight and rounded" ? 2 * heavy + up : heavy + up;
  }
}

/** Views over the same axes. `chance` says how likely the group is, relative to the others of its part. */
export class Group {
  constructor(axes, finest = false, chance = 1) {
    Object.assign(this, { axes, finest, chance });
    this.views = finest ? 1 : axes.reduce((count, { tree }) => count * tree.levels, 1);
  }

  /** The levels of the `local`-th view; the last axis changes fastest. */
  choice(local) {
    const levels = [];
    for (const { tree } of this.axes.toReversed()) {
      levels.unshift(this.finest ? tree.levels - 1 : local % tree.levels);
      if (!this.finest) local = Math.floor(local / tree.levels);
    }
    return levels;
  }

  /** How many cells a view has; beyond 2^53 approximately. */
  cells(levels) {
    return this.axes.reduce((count, { tree }, i) => count * tree.cells(levels[i]), 1);
  }

  /** The number of a cell: mixed radix, or folded into 32 bits where there are too many cells. */
  number(levels, coordinates) {
    const nodes = this.axes.map(({ tree }, i) => tree.cell(levels[i], coordinates[i]));
    if (this.cells(levels) > NUMBERED_CELLS) return fold(nodes);
    return nodes.reduce((number, node, i) => number * this.axes[i].tree.cells(levels[i]) + node, 0);
  }
}
