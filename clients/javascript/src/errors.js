// Everything that can go wrong, as one tree.
//
//     DeniableError
//     ├── BadInput               the caller can repair it
//     │   ├── InvalidParameter   a setting is impossible
//     │   ├── InvalidData        rows or reports do not have the declared form
//     │   └── BudgetExceeded     a ledger has too little left for what was asked
//     └── Failure                the request was fine, something else failed
//
// A message says what happened, what it cost and what to do. A value of somebody's data never appears in one.

export class DeniableError extends Error {}
export class BadInput extends DeniableError {}

export class InvalidParameter extends BadInput {
  constructor(what, problem, repair) {
    super(`${what} ${problem}. Nothing was drawn or spent. ${repair}`);
  }
}

export class InvalidData extends BadInput {
  constructor(problem, repair) {
    super(`${problem}. Nothing was drawn or spent. ${repair}`);
  }
}

export class BudgetExceeded extends BadInput {
  constructor(what, asked, left, limit) {
    super(`${what} asks for ε = ${asked}, above ${left}, ${limit}. Nothing was drawn or spent. Ask for less.`);
  }
}

export class Failure extends DeniableError {}

// Minifiers rename classes.
const types = { DeniableError, BadInput, InvalidParameter, InvalidData, BudgetExceeded, Failure };
for (const [name, type] of Object.entries(types)) type.prototype.name = name;

export function check(isFine, what, problem, repair) {
  if (!isFine) throw new InvalidParameter(what, problem, repair);
}

/** Something that the browser or Node.js has to have. */
export function needed(what, value) {
  if (value) return value;
  throw new Failure(`${what} is missing. Nothing was drawn or sent. Use a current browser over https, or Node.js 20.`);
}
