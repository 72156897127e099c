// An editor for SQL with completion of tables, columns and values, and a mark where an error is.
import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { StandardSQL, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: tags.keyword, class: "sql-keyword" }, { tag: tags.string, class: "sql-string" }, { tag: tags.number, class: "sql-number" },
]);

export function editor({ text, label, run }) {
  const language = new Compartment();
  const nonce = document.querySelector("meta[name=csp-nonce]").content;
  const view = new EditorView({
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(nonce), history(), drawSelection(), closeBrackets(), bracketMatching(), autocompletion(),
        // Browsers keep the style of a text that is typed over by writing it into attributes, which the policy forbids.
        EditorView.domEventHandlers({ beforeinput: (event, view) => {
          if (event.inputType !== "insertText" || event.data == null || view.composing || view.state.selection.main.empty) return false;
          event.preventDefault();
          view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type" });
          return true;
        } }),
        syntaxHighlighting(colours), EditorView.lineWrapping, placeholder("SELECT COUNT(*) AS n FROM …"),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        keymap.of([{ key: "Mod-Enter", run: () => { run(); return true; } }, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        language.of(sql({ dialect: StandardSQL })),
      ],
    }),
  });
  return {
    element: view.dom,
    text: () => view.state.doc.toString(),
    set: (changed) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: changed } }),
    focus: () => view.focus(),
    knows(tables) {
      const schema = Object.fromEntries(tables.map((table) => [table.name, table.columns.map((column) => ({ label: column.name, detail: column.type.toLowerCase(), info: column.comment }))]));
      const values = Object.fromEntries(tables.flatMap((table) => table.columns.filter((column) => column.values.length).map((column) => [column.name.toLowerCase(), column.values])));
      const support = sql({ dialect: StandardSQL, schema, defaultTable: tables[0]?.name, upperCaseKeywords: true });
      view.dispatch({ effects: language.reconfigure([support, StandardSQL.language.data.of({ autocomplete: (context) => completed(context, values) })]) });
    },
    mark(start, words) {
      const at = Math.min(start ?? 0, view.state.doc.length);
      const rest = view.state.sliceDoc(at).match(/^[\w"'*.]+/)?.[0].length ?? 1;
      const marks = start == null ? [] : [{ from: at, to: Math.min(at + Math.max(rest, 1), view.state.doc.length), severity: "error", message: words }];
      view.dispatch(setDiagnostics(view.state, marks));
    },
  };
}

function completed(context, values) {
  const before = context.matchBefore(/(\w+)"?\s*(=|<>|<=|>=|<|>|\bIN\s*\()\s*'?[\w -]*/i);
  const column = before?.text.match(/^\w+/)?.[0].toLowerCase();
  if (!column || !values[column]) return null;
  const typed = before.text.match(/'?[\w -]*$/)[0].trimStart();
  return {
    from: context.pos - typed.length,
    options: values[column].map((value) => ({ label: typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value), type: "constant", detail: `value of ${column}` })),
  };
}
