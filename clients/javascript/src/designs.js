// The designs by name. Each takes a table and a fan-out and returns its parts: lists of groups of views.
import { Axis, Group, Tree } from "./views.js";

const axesOf = (table, fanout) =>
  table.domains.map(({ size, isOrdinal }, i) => new Axis("value", new Tree(size, isOrdinal ? fanout : size), i));
const sums = (table) => table.domains.flatMap(({ isSummed }, i) => (isSummed ? [i] : []));
const weight = (table) => (table.many === null ? [] : [new Axis("weight", new Tree(2, 2))]);
const rounded = (i) => new Axis("rounded", new Tree(2, 2), i);
const embedded = (table, i, fanout) => new Axis("embedded", new Tree(2 * table.domains[i].size, fanout), i);
const augmented = (table, i) => (table.many === null ? rounded(i) : new Axis("weight and rounded", new Tree(4, 4), i));

const plain = (finest) => (table, fanout) => [[new Group([...axesOf(table, fanout), ...weight(table)], finest)]];
const perSum = (finest, axes) => (table, fanout) => {
  const groups = sums(table).map((i) => new Group(axes(table, i, fanout), finest));
  return groups.length ? [groups] : plain(finest)(table, fanout); // nothing can be summed
};
const withAugmented = (table, i, fanout) => [...axesOf(table, fanout), augmented(table, i)];
const withEmbedded = (table, i, fanout) => [
  ...axesOf(table, fanout).with(i, embedded(table, i, fanout)),
  ...weight(table),
];

export const DESIGNS = {
  hio: plain(false),
  mg: plain(true),
  ahio: perSum(false, withAugmented),
  amg: perSum(true, withAugmented),
  ehio: perSum(false, withEmbedded),
  sc: (table, fanout) => [...axesOf(table, fanout), ...weight(table)].map((axis) => [new Group([axis])]),
  "sr-hio": (table, fanout) => [[new Group([...axesOf(table, fanout), ...sums(table).map(rounded), ...weight(table)])]],
};
/** The designs whose views are all combinations of levels of all attributes. */
export const PRODUCTS = ["hio", "sr-hio", "ahio", "ehio"];

/** The design "grid": the views that a specification lists. */
export const gridParts = (table, views) => [
  views.map(({ axes, weight: chance }) => {
    const cuts = axes.map(
      ({ attribute, kind, places }) =>
        new Axis(kind, new Tree(places.length, Math.max(places.length, 2)), attribute, places),
    );
    return new Group([...cuts, ...weight(table)], true, chance);
  }),
];
