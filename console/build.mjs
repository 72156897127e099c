// Builds the console into the Python package: one script, one style sheet, one page, and the licences of what is inside.
import { build } from "esbuild";
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";

const out = process.argv[2] ?? "../src/deniable/service/console_files";
await mkdir(out, { recursive: true });
const made = await build({
  entryPoints: { console: "src/main.js" },
  bundle: true, minify: true, format: "esm", target: "es2022", legalComments: "none", metafile: true, outdir: out,
});
await copyFile("index.html", `${out}/index.html`);
const packages = new Set(Object.keys(made.metafile.inputs).flatMap((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []));
const licences = [];
for (const name of [...packages].sort()) {
  const folder = `node_modules/${name}`;
  const about = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  const file = (await readdir(folder)).find((entry) => /^licen[sc]e/i.test(entry));
  licences.push(`${name} ${about.version} (${about.license})\n\n${file ? (await readFile(`${folder}/${file}`, "utf8")).trim() : ""}`);
}
await writeFile(`${out}/licences.txt`, licences.join("\n\n----\n\n") + "\n");
