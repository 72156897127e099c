// Grids: a few views that are listed one by one, each with the attributes it shows and how finely.
import { checkField, fieldsOf, integerOf, listOf } from "./fields.js";
import { Numeral } from "./strict_json.js";

const MOST_WEIGHT = 2 ** 20,
  MOST_GRID_VIEWS = 5_000,
  MOST_PLACES = 2 ** 20;

const evenCells = (count, size) =>
  Array.from({ length: count }, (_, n) => Number((BigInt(n) * BigInt(size)) / BigInt(count)));

function evenPoints(count, size) {
  const steps = BigInt(Math.max(count - 1, 1)),
    span = 2n * BigInt(size - 1);
  return Array.from({ length: count }, (_, n) => Number((BigInt(n) * span + steps) / (2n * steps)));
}

/** The views of a table: their weights, and per axis the attribute, whether it is cut into points or cells, and where it is cut. */
export const gridViews = (table, entry) =>
  listOf(entry, MOST_GRID_VIEWS).map((view) => {
    const { axes, weight } = fieldsOf(view, ["axes", "weight"]),
      names = table.private.map(({ name }) => name),
      cuts = fieldsOf(axes, [], names);
    checkField(Object.keys(cuts).length);
    return {
      weight: integerOf(weight, 1, MOST_WEIGHT),
      axes: names.flatMap((name, i) => (Object.hasOwn(cuts, name) ? [cutOf(table.domains[i], i, cuts[name])] : [])),
    };
  });

function cutOf(domain, attribute, entry) {
  const isPoints = entry?.points !== undefined,
    kind = isPoints ? "points" : "cells",
    given = fieldsOf(entry, [kind])[kind],
    { size } = domain;
  checkField(!isPoints || domain.isOrdinal);
  const [least, even] = isPoints ? [2, evenPoints] : [1, evenCells],
    last = size - 1;
  let places;
  if (given instanceof Numeral) places = even(integerOf(given, least, Math.min(size, MOST_PLACES)), size);
  else {
    places = listOf(given, Infinity).map((position) => integerOf(position, 0, last));
    const rises = places.every((position, i) => !i || places[i - 1] < position);
    checkField(places.length >= least && rises && places[0] === 0 && (!isPoints || places.at(-1) === last));
    checkField(String(places) !== String(even(places.length, size))); // that would be written as a number
  }
  // Missing values with a cell of their own share it with no value.
  if (domain.hasOwnCell) checkField(places.includes(last) && (!isPoints || places.includes(size - 2)));
  return { attribute, isPoints, places };
}
