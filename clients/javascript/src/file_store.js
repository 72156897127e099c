// A store in a file, for Node.js. It is replaced as a whole, so that a crash leaves the old text or the new one, and
// only one process at a time has the file `.lock` next to it.
import { open, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { Failure } from "./errors.js";
import { randomHex } from "./randomness.js";

const WAIT_MS = 10_000,
  PAUSE_MS = 20;

export class FileStore {
  #path;
  #waitMs;

  constructor(path, { waitMs = WAIT_MS } = {}) {
    this.#path = resolve(path);
    this.#waitMs = waitMs;
  }

  async read() {
    return contentOf(this.#path);
  }

  async write(text) {
    const fresh = `${this.#path}.${randomHex(8)}.new`;
    try {
      await writeFile(fresh, text, true);
      await rename(fresh, this.#path);
      await synchronise(dirname(this.#path)); // the name as well
    } catch (problem) {
      await rm(fresh, { force: true });
      throw new Failure(
        `${basename(this.#path)} cannot be written (${problem.code}). Nothing was sent. Check disk and rights.`,
      );
    }
  }

  async alone(work) {
    const lock = `${this.#path}.lock`,
      mine = `${process.pid} ${await startOf(process.pid)} ${randomHex(16)}`;
    for (const end = Date.now() + this.#waitMs; !(await taken(lock, mine));) {
      if (Date.now() > end)
        throw new Failure(
          `${basename(lock)} is held by another process. Nothing was sent. If there is none, remove that file.`,
        );
      await new Promise((wake) => setTimeout(wake, PAUSE_MS));
    }
    try {
      return await work();
    } finally {
      await rm(lock, { force: true });
    }
  }
}

async function contentOf(path) {
  try {
    return await readFile(path, "utf8");
  } catch (problem) {
    if (problem.code === "ENOENT") return null;
    throw new Failure(`${basename(path)} cannot be read (${problem.code}). Nothing was sent. Check its rights.`);
  }
}

async function writeFile(path, text, isNew) {
  const file = await open(path, isNew ? "wx" : "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function synchronise(folder) {
  if (process.platform === "win32") return; // folders cannot be opened there
  const file = await open(folder, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Whether this process has the lock now. A lock whose process has ended is removed, by one process at a time. */
async function taken(lock, mine) {
  try {
    await writeFile(lock, mine, true);
    return true;
  } catch (problem) {
    if (problem.code !== "EEXIST")
      throw new Failure(`${basename(lock)} cannot be made (${problem.code}). Nothing was sent. Check its rights.`);
  }
  const holder = await contentOf(lock);
  if (!holder || (await isAlive(holder))) return false;
  const removing = `${lock}.removing`;
  try {
    await writeFile(removing, mine, true);
  } catch {
    return false; // somebody else is at it
  }
  if ((await contentOf(lock)) === holder) await rm(lock, { force: true });
  await rm(removing, { force: true });
  return false;
}

/** Whether the process that wrote a lock still runs: its number may have gone to another one since. */
async function isAlive(holder) {
  const [pid, start] = holder.split(" ");
  try {
    process.kill(Number(pid), 0);
  } catch (problem) {
    return problem.code !== "ESRCH";
  }
  return (await startOf(pid)) === start;
}

/** When a process started, where the system says so. */
async function startOf(pid) {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "?";
}
