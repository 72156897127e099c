// Where we are: the page and its state are in the address after #, so that links reopen them.
export const page = () => location.hash.slice(1).split("?")[0] || "ask";
export const here = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

export function goTo(name, state = {}, { quietly = false } = {}) {
  const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value)).toString();
  const hash = `#${name}${query ? `?${query}` : ""}`;
  if (quietly) history.replaceState(null, "", hash);
  else location.hash = hash;
}
