// Grids: a few views that are listed one by one, each with the attributes it shows and how finely.
import { checkField, fieldsOf, integerOf } from "./fields.js";
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

/** The views of a table: their weights, and per axis the attribute, the kind of its cut and where it is cut. */
export function gridViews(table, entry) {
  const where = `grid of table '${table.name}'`,
    fits = Array.isArray(entry) && entry.length && entry.length <= MOST_GRID_VIEWS;
  checkField(fits, where);
  return entry.map((view) => {
    const { axes, weight } = fieldsOf(where, view, ["axes", "weight"]);
    const names = table.private.map(({ name }) => name),
      cuts = fieldsOf(where, axes, [], names);
    checkField(Object.keys(cuts).length, where);
    return {
      weight: integerOf(`${where}: weight`, weight, 1, MOST_WEIGHT),
      axes: names.flatMap((name, i) =>
        Object.hasOwn(cuts, name) ? [cutOf(`${where}: '${name}'`, table.domains[i], i, cuts[name])] : [],
      ),
    };
  });
}

function cutOf(where, domain, attribute, entry) {
  const kind = entry && Object.hasOwn(entry, "points") ? "points" : "cells";
  const given = fieldsOf(where, entry, [kind])[kind],
    isPoints = kind === "points",
    { size } = domain;
  checkField(!isPoints || domain.isOrdinal, where);
  const least = isPoints ? 2 : 1,
    even = isPoints ? evenPoints : evenCells;
  const apart = (places) => {
    // missing values with a cell of their own share it with no value
    const own = domain.isOrdinal && domain.known < size ? [size - 1, ...(isPoints ? [size - 2] : [])] : [];
    checkField(
      own.every((position) => places.includes(position)),
      where,
    );
    return { attribute, kind, places };
  };
  if (given instanceof Numeral) return apart(even(integerOf(where, given, least, Math.min(size, MOST_PLACES)), size));
  checkField(Array.isArray(given), where);
  const places = given.map((position) => integerOf(where, position, 0, size - 1));
  const rises = places.every((position, i) => i === 0 || places[i - 1] < position);
  const ends = places[0] === 0 && (!isPoints || places.at(-1) === size - 1);
  checkField(places.length >= least && rises && ends, where);
  const isEven = even(places.length, size).every((position, i) => position === places[i]);
  checkField(!isEven, where);
  return apart(places);
}
