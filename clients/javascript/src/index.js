// The device side of deniable: everything that a page or a program needs to report.
export { BrowserStore } from "./browser_store.js";
export { Client } from "./client.js";
export { Collection } from "./collection.js";
export { spends } from "./costs.js";
export { BadInput, BudgetExceeded, DeniableError, Failure, InvalidData, InvalidParameter } from "./errors.js";
export { Ledger } from "./ledger.js";
export { Report } from "./report.js";
export { ProcessStore } from "./stores.js";
export { ToPLClient } from "./stream_client.js";
export { StreamReport } from "./stream_report.js";
export { Uploader } from "./uploader.js";
