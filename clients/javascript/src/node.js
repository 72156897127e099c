// What Node.js gets: the same, and a store in a file.
export { FileStore } from "./file_store.js";
export * from "./index.js";
