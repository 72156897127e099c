// Types of the package `deniable`. Fractions are pairs [numerator, denominator] of BigInt.

/** Where a device keeps what must not be lost. Two methods are enough; `alone` is for stores that several tabs or processes share. */
export interface Store {
  /** The text that was written last; null if nothing was ever written. */
  read(): Promise<string | null | undefined>;
  /** Resolves once the text is safe, as a whole or not at all. */
  write(text: string): Promise<void>;
  /** Awaits the work while it keeps all others out. */
  alone?<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** IndexedDB with Web Locks: all tabs and workers of an origin share the stores of one name. */
export class BrowserStore implements Store {
  constructor(name: string);
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** A file, in Node.js only. */
export class FileStore implements Store {
  constructor(path: string, settings?: { waitMs?: number });
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
  alone<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Forgotten with the process: for tests, and for people who are asked once. */
export class ProcessStore implements Store {
  read(): Promise<string | null>;
  write(text: string): Promise<void>;
}

export type UserId = string | number | bigint;
export type Fraction = readonly [bigint, bigint];
/** A value of a private attribute. Dates and times are read in UTC. */
export type Value = string | number | bigint | boolean | Date | null | undefined;
export type Row = { readonly [attribute: string]: Value };
export type PublicValue = string | number | bigint | boolean | null;
/** A uniform integer from 0 to bound − 1. Only tests replace the secure one. */
export type RandBelow = (bound: bigint) => bigint | Promise<bigint>;

export interface ClientSettings {
  /** What was sent. It belongs to one user and forgets nothing. */
  memory: Store;
  /** The id under which reports are sent; needed where coins are assigned. */
  user?: UserId | null;
  ledger?: Ledger | null;
  randbelow?: RandBelow;
  /** Milliseconds since 1970. */
  clock?: () => number;
}

/** A specification and its identity. */
export class Collection {
  private constructor();
  /** From the text of the canonical form, as `collection.json` has it. */
  static fromJson(text: string): Promise<Collection>;
  /** From a collector. With `sha256`, no other specification is taken. */
  static fetch(url: string | URL, name: string, settings?: { sha256?: string | null }): Promise<Collection>;
  readonly name: string | null;
  readonly sha256: string;
  readonly epsilon: number;
  readonly design: string;
  reportsPerUser(table: string): number;
  epsilonPerReport(table: string): number;
  client(settings: ClientSettings): Client;
}

/** What all reports of a user cost together, in all tables and rounds; null if that is infinite. */
export function spends(collection: Collection): Fraction | null;

/** Reports of one user. Asked again, it sends the same bytes. */
export class Client {
  constructor(collection: Collection, settings: ClientSettings);
  readonly collection: Collection;
  readonly user: UserId | null;
  /** How many rows had values without a position, by reason. It stays on the device. */
  readonly rejected: { [reason: string]: number };
  /** The report of a table that takes one; null in a round that is not hers. */
  report(table: string, row: Row, round?: number | null): Promise<Report | null>;
  /** All reports of a table: always the same number, whatever the rows are. */
  reports(table: string, rows: readonly Row[], round?: number | null): Promise<Report[]>;
}

/** What a device sends about one row: already randomised, so it may be shown to anybody. */
export class Report {
  constructor(bytes: Uint8Array);
  static fromHex(digits: string): Report;
  readonly bytes: Uint8Array;
  readonly slot: number;
  readonly round: number;
  readonly view: number;
  readonly seed: number;
  readonly y: bigint;
  readonly tag: bigint;
  readonly coins: "drawn" | "assigned";
  toHex(): string;
  toJson(user: UserId, table: string, attributes?: { readonly [name: string]: unknown }): string;
}

export interface LedgerEntry {
  readonly time: string;
  readonly what: string;
  /** An exact fraction, "numerator/denominator". */
  readonly epsilon: string;
  readonly specification: string;
}

/** What one person has spent, over all collections and streams; it refuses what would exceed her limit. */
export class Ledger {
  constructor(
    store: Store,
    settings?: {
      /** Needed to start a ledger. */
      limit?: number | null;
      /** The most that one collection may cost over its lifetime. */
      largest?: number | null;
      /** Collections, or their hashes: no other is answered. */
      pins?: readonly (string | { readonly sha256: string })[];
      clock?: () => number;
    },
  );
  entries(): Promise<LedgerEntry[]>;
  balance(): Promise<{ spent: number; left: number; limit: number }>;
  raiseLimit(limit: number): Promise<void>;
}

/** Sends what a client reports to a collector, once it can be reached. */
export class Uploader {
  constructor(
    client: Client,
    url: string | URL,
    settings: {
      /** What waits; it survives a restart. */
      queue: Store;
      user?: UserId;
      token?: string | (() => string | Promise<string>) | null;
      /** The collector's name for the collection, if it has none. */
      collection?: string;
    },
  );
  /** Reports that the collector refused for good, by reason. */
  readonly refused: { [reason: string]: number };
  waiting(): Promise<number>;
  add(
    table: string,
    rows: readonly Row[],
    settings?: { public?: { readonly [name: string]: PublicValue }; round?: number | null },
  ): Promise<void>;
  /** Try once; whether all of it was answered. */
  send(): Promise<boolean>;
  deliver(attempts?: number): Promise<boolean>;
  /** Deliver in the background: now, after pauses, when online again, and when the page is hidden. */
  start(settings?: { onProblem?: (problem: unknown) => void }): this;
  stop(): void;
  /** Send what waits without waiting for an answer, for a page that is closing. */
  flush(): boolean;
}

export interface StreamSettings {
  epsilon: number;
  bound: number;
  name?: string;
  scale?: "log" | "linear";
  mechanism?: "hybrid" | "piecewise" | "rounding" | "wave";
  grid?: number | null;
  renewal?: number;
}

/** The one report of one user to a stream without trust. */
export class ToPLClient {
  constructor(settings: StreamSettings & { memory: Store; ledger?: Ledger | null; randbelow?: RandBelow });
  static fetch(
    url: string | URL,
    collection: string,
    stream: string,
  ): Promise<{ settings: StreamSettings; theta: number | null }>;
  /** How many values were no numbers in [0, bound], by reason. It stays on the device. */
  readonly clipped: { [reason: string]: number };
  report(value: unknown, theta?: number | null): Promise<StreamReport>;
}

export class StreamReport {
  constructor(bytes: Uint8Array);
  static fromHex(digits: string): StreamReport;
  readonly bytes: Uint8Array;
  readonly phase: 1 | 2;
  readonly tag: number;
  readonly y: number;
  readonly theta: number;
  toHex(): string;
  toJson(user: UserId): string;
}

export class DeniableError extends Error {}
/** The caller can repair it. */
export class BadInput extends DeniableError {}
export class InvalidParameter extends BadInput {}
export class InvalidData extends BadInput {}
export class BudgetExceeded extends BadInput {}
/** The request was fine, something else failed. */
export class Failure extends DeniableError {}
