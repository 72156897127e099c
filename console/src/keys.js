// A dialog for keys: this tab keeps them until it is closed, and they leave it only for this server.
import { fill, h, labelled, problem, say } from "./dom.js";
import { asked, keep, keys } from "./server.js";

export function showKeys(changed) {
  const field = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const told = h("div");
  const list = h("ul", { class: "plain" });
  const dialog = h("dialog", { "aria-labelledby": "keys-title" },
    h("h2", { id: "keys-title" }, "Keys"),
    h("p", {}, "A key of the scope ask answers questions, one of the scope operate shows and changes what is collected. This tab keeps them until it is closed."),
    list,
    h("form", { method: "dialog", onsubmit: add },
      labelled("Key", field, { hint: "Made by: deniable key add FOLDER NAME --scope ask" }), told,
      h("div", { class: "row" }, h("button", { type: "submit" }, "Add key"), h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close"))));

  function draw() {
    fill(list, Object.keys(keys()).map((scope) => h("li", {}, `${scope} `,
      h("button", { type: "button", class: "quiet", onclick: () => { const { [scope]: _, ...rest } = keys(); keep(rest); draw(); changed(); } }, `Forget the key for ${scope}`))));
  }

  async function add(event) {
    event.preventDefault();
    const before = keys();
    try {
      keep({ ...before, "": field.value.trim() });
      const { scope } = await asked("v1/key", { scope: "" });
      keep({ ...before, [scope]: field.value.trim() });
      field.value = "";
      fill(told);
      say(`Key of the scope ${scope} added.`);
      draw();
      dialog.close();
      changed();
    } catch (failure) {
      keep(before);
      fill(told, problem(failure.message, "Check that all of it was copied: it begins with dnk_."));
    }
  }

  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  draw();
  dialog.showModal();
  field.focus();
}
