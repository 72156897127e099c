// Writes the page of examples/web into the Python package, with all that it imports in one file, for `deniable demo --serve`.
// It is committed, so that nobody needs Node.js to look at it. The first line says from which sources it was made.
import { createHash } from "node:crypto";
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../", import.meta.url),
  SOURCES = new URL("clients/javascript/src/", ROOT),
  EXAMPLE = new URL("examples/web/", ROOT);
export const SURVEY = new URL("src/deniable/cli/demo/survey_files/", ROOT);

/** SHA-256 of all that the page is made from. */
export function sourcesHash() {
  const hash = createHash("sha256").update(readFileSync(new URL("survey.js", EXAMPLE)));
  for (const file of readdirSync(SOURCES).sort())
    hash.update(`\0${file}\0`).update(readFileSync(new URL(file, SOURCES)));
  return hash.digest("hex");
}

async function write() {
  const { build } = await import("esbuild");
  const entry = fileURLToPath(new URL("survey.js", EXAMPLE)),
    made = await build({
      entryPoints: [entry],
      bundle: true,
      minify: true,
      format: "esm",
      charset: "utf8",
      write: false,
    });
  const note = `// Built by clients/javascript/build_survey.js from sources with SHA-256 ${sourcesHash()}\n`;
  writeFileSync(new URL("survey.js", SURVEY), note + made.outputFiles[0].text);
  for (const file of ["index.html", "survey.css"]) copyFileSync(new URL(file, EXAMPLE), new URL(file, SURVEY));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await write();
