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

export class DeniableError extends Error {
  get name() {
    return this.constructor.label;
  }
  static label = "DeniableError"; // minifiers rename classes
}

export class BadInput extends DeniableError {
  static label = "BadInput";
}

export class InvalidParameter extends BadInput {
  static label = "InvalidParameter";
  constructor(what, problem, repair) {
    super(`${what} ${problem}. Nothing was drawn or spent. ${repair}`);
  }
}

export class InvalidData extends BadInput {
  static label = "InvalidData";
  constructor(problem, repair) {
    super(`${problem}. No randomness was drawn and nothing was spent. ${repair}`);
  }
}

export class BudgetExceeded extends BadInput {
  static label = "BudgetExceeded";
  constructor(what, asked, left, limit) {
    super(`${what} asks for ε = ${asked}, above ${left}, ${limit}. Nothing was drawn, charged or sent. Ask for less.`);
  }
}

export class Failure extends DeniableError {
  static label = "Failure";
}

export const check = (isFine, what, problem, repair) => {
  if (!isFine) throw new InvalidParameter(what, problem, repair);
};
