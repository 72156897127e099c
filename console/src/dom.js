// Elements without a framework: h("p", {class: "note"}, "text", child). Texts are never read as HTML.
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

export const fill = (element, ...children) => element.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
export const say = (words) => { document.getElementById("said").textContent = words; };

let used = 0;
export function labelled(words, control, { hint } = {}) {
  control.id ||= `field-${++used}`;
  const about = hint && h("small", { id: `${control.id}-hint` }, hint);
  if (about) control.setAttribute("aria-describedby", about.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, words), control, about);
}

export function table(caption, header, rows, numeric = []) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption),
      h("thead", {}, h("tr", {}, header.map((name, at) => h("th", { scope: "col", class: numeric[at] && "number" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: numeric[at] && "number" }, cell)))))));
}

export const problem = (words, todo) => h("div", { class: "problem", role: "alert" }, h("p", {}, h("strong", {}, words)), todo && h("p", {}, todo));
export const empty = (words, todo) => h("div", { class: "empty" }, h("p", {}, words), todo && h("p", {}, todo));

export function download(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
