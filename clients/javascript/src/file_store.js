// A store in a file, for Node.js. It is replaced as a whole, so that a crash leaves the old text or the new one, and
// only one process at a time has the file `.lock` next to it. Links are followed first: by whatever name a file is
// reached, it is the same store.
import { link, open, readFile, readlink, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { Failure } from "./errors.js";
import { randomHex, sha256Hex } from "./randomness.js";

const WAIT_MS = 10_000,
  PAUSE_MS = 20,
  MOST_LINKS = 40;

export class FileStore {
  #path;
  #waitMs;

  constructor(path, { waitMs = WAIT_MS } = {}) {
    this.#path = resolve(path);
    this.#waitMs = waitMs;
  }

  async read() {
    const path = await followed(this.#path),
      names = (await stat(path).catch(() => null))?.nlink ?? 1;
    if (names > 1)
      throw new Failure(
        `${basename(path)} has ${names} names (hard links), and only this one would be replaced. Nothing was sent. Remove the others.`,
      );
    return contentOf(path);
  }

  async write(text) {
    const path = await followed(this.#path),
      fresh = `${path}.${randomHex(8)}.new`;
    try {
      await writeFile(fresh, text);
      await rename(fresh, path);
      await synchronise(dirname(path)); // the name as well
    } catch (problem) {
      await rm(fresh, { force: true });
      throw new Failure(
        `${basename(path)} cannot be written (${problem.code}). Nothing was sent. Check disk and rights.`,
      );
    }
  }

  async alone(work) {
    const lock = `${await followed(this.#path)}.lock`,
      mine = `${process.pid} ${await startOf(process.pid)} ${randomHex(16)}`,
      fresh = `${lock}.${randomHex(8)}.new`;
    try {
      for (const end = Date.now() + this.#waitMs; !(await taken(lock, mine, fresh));) {
        if (Date.now() > end)
          throw new Failure(
            `${basename(lock)} is held by another process. Nothing was sent. If there is none, remove that file.`,
          );
        await new Promise((wake) => setTimeout(wake, PAUSE_MS));
      }
    } finally {
      await rm(fresh, { force: true });
    }
    try {
      return await work();
    } finally {
      await rm(lock, { force: true });
    }
  }
}

/** The path without links, whether there is a file or not. */
async function followed(path) {
  for (let links = 0; links < MOST_LINKS; links++) {
    try {
      return await realpath(path);
    } catch (problem) {
      if (problem.code !== "ENOENT") break;
    }
    const target = await readlink(path).catch(() => null);
    if (target === null) return join(await realpath(dirname(path)).catch(() => dirname(path)), basename(path));
    path = resolve(dirname(path), target);
  }
  throw new Failure(`${basename(path)} cannot be reached. Nothing was sent. Check links and rights.`);
}

async function contentOf(path) {
  try {
    return await readFile(path, "utf8");
  } catch (problem) {
    if (problem.code === "ENOENT") return null;
    throw new Failure(`${basename(path)} cannot be read (${problem.code}). Nothing was sent. Check its rights.`);
  }
}

async function writeFile(path, text) {
  const file = await open(path, "wx", 0o600);
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

/**
 * Whether this process has the lock now. Names are linked to a whole file: wherever a process is killed, others see who
 * it was. A lock whose process has ended goes to its heir, of whom there is one; an heir that has ended has one too.
 */
async function taken(lock, mine, fresh) {
  try {
    if ((await contentOf(fresh)) === null) await writeFile(fresh, mine);
    if (await linked(fresh, lock)) return true;
    const dead = await contentOf(lock),
      names = [];
    for (let holder = dead; holder !== null && !(await isAlive(holder)); holder = await contentOf(names.at(-1))) {
      names.push(`${lock}.${(await sha256Hex(`${names.at(-1)} ${holder}`)).slice(0, 16)}.heir`);
      if (!(await linked(fresh, names.at(-1)))) continue;
      const isHeir = (await contentOf(lock)) === dead; // otherwise somebody was, and has it
      if (isHeir) await rename(fresh, lock);
      for (const name of names) await rm(name, { force: true });
      return isHeir;
    }
    return false;
  } catch (problem) {
    if (problem instanceof Failure) throw problem;
    throw new Failure(`${basename(lock)} cannot be made (${problem.code}). Nothing was sent. Check its rights.`);
  }
}

/** Give a file one more name, unless another has it. */
async function linked(path, name) {
  try {
    await link(path, name);
    return true;
  } catch (problem) {
    if (problem.code !== "EEXIST") throw problem;
    return false;
  }
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
