// Requests to this server and to no other, each with a key of the scope that it needs.
const kept = "deniable keys";

export function keys() {
  try { return JSON.parse(sessionStorage.getItem(kept) ?? "{}"); } catch { return {}; }
}
export function keep(changed) { sessionStorage.setItem(kept, JSON.stringify(changed)); }

export class Refused extends Error {
  constructor(status, reason, words, { start, scope = "ask" } = {}) { super(words); Object.assign(this, { status, reason, start, scope: scope || "ask" }); }
  get todo() {
    if (this.status === 0) return "Check that the server runs: deniable serve FOLDER. Then try again; what you typed is still here.";
    if (this.status === 401 || this.status === 403) return `Choose Keys and enter a key that is valid. An operator makes one: deniable key add FOLDER NAME --scope ${this.scope}`;
    if (this.status === 429) return "Others are asking, too. Try again in a few seconds.";
    if (this.status === 504) return "Ask for fewer groups, or have the operator raise question_seconds.";
    return null;
  }
}

export async function asked(path, { scope = "ask", body, accept = "application/json", signal } = {}) {
  const key = keys()[scope];
  if (scope && !key) throw new Refused(401, "key", `This needs a key with the scope ${scope}.`, { scope });
  const headers = { Accept: accept };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal, cache: "no-store", credentials: "omit" });
  } catch (failure) {
    if (failure.name === "AbortError") throw failure;
    throw new Refused(0, "unreachable", "The server does not answer.");
  }
  if (!answer.ok) {
    const about = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, about.error, about.message ?? `The server answers with status ${answer.status}.`, { start: about.start, scope });
  }
  return accept === "application/json" ? answer.json() : answer.blob();
}
