// The designs by name. Each takes a table and a fan-out and returns its parts: lists of groups of views.
import {
  cellsAxis,
  embeddedAxis,
  group,
  pointsAxis,
  roundedAxis,
  valueAxis,
  weightAndRoundedAxis,
  weightAxis,
} from "./views.js";

const values = ({ domains }, fanout) =>
  domains.map(({ size, isOrdinal }, i) => valueAxis(i, size, isOrdinal ? fanout : size));
const weight = ({ many }) => (many === null ? [] : [weightAxis()]);
/** `make(attribute, size)` for every attribute that can be summed. */
const perSum = ({ domains }, make) => domains.flatMap(({ size, isSummed }, i) => (isSummed ? [make(i, size)] : []));

const plain = (table, fanout) => [...values(table, fanout), ...weight(table)];
const augmented = (table, fanout) =>
  perSum(table, (i, size) => [
    ...values(table, fanout),
    (table.many === null ? roundedAxis : weightAndRoundedAxis)(i, size),
  ]);
const embedded = (table, fanout) =>
  perSum(table, (i, size) => plain(table, fanout).with(i, embeddedAxis(i, size, fanout)));

/** One part with a group per list of axes; if nothing can be summed, with one group. */
const grouped = (lists, finest) => (table, fanout) => {
  const axes = lists(table, fanout);
  return [(axes.length ? axes : [plain(table, fanout)]).map((list) => group(list, finest))];
};

export const DESIGNS = {
  hio: grouped((table, fanout) => [plain(table, fanout)]),
  mg: grouped((table, fanout) => [plain(table, fanout)], true),
  ahio: grouped(augmented),
  amg: grouped(augmented, true),
  ehio: grouped(embedded),
  sc: (table, fanout) => plain(table, fanout).map((axis) => [group([axis])]),
  "sr-hio": grouped((table, fanout) => [[...values(table, fanout), ...perSum(table, roundedAxis), ...weight(table)]]),
};
/** The designs whose views are all combinations of levels of all attributes. */
export const PRODUCTS = ["hio", "sr-hio", "ahio", "ehio"];

/** The design "grid": the views that a specification lists. */
export const gridParts = (table, views) => [
  views.map(({ axes, weight: chance }) => {
    const cuts = axes.map(({ attribute, isPoints, places }) => (isPoints ? pointsAxis : cellsAxis)(attribute, places));
    return group([...cuts, ...weight(table)], true, chance);
  }),
];
