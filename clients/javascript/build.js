// Writes dist/deniable.min.js, one file for <script type="module">, and prints what a page loads that imports all or some
// of it: with gzip, which every server has, and with brotli, which servers of files and current browsers speak over https.
// Bundlers leave out what a page does not import.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const folder = fileURLToPath(new URL("src", import.meta.url)),
  out = new URL("dist/", import.meta.url);
const REPORTING = ["Collection", "BrowserStore", "Uploader"];
const PAGES = {
  "a page that reports": REPORTING,
  "and keeps a ledger": [...REPORTING, "Ledger"],
  "a page of streams": ["ToPLClient", "BrowserStore"],
};

/** Properties that neither a caller nor a file, a message or a browser names: they are shortened like variables. */
const OWN_PROPERTIES = [
  "changesArePublic",
  "charged",
  "checkTheta",
  "coordinate",
  "domains",
  "drawInstantaneous",
  "drawPermanent",
  "firstView",
  "hasOwnCell",
  "isAssigned",
  "isKeptIn",
  "isMemoised",
  "isOrdinal",
  "isPoints",
  "isRotating",
  "isSummed",
  "outcomes",
  "permanentPerReport",
  "responses",
  "secretBelow",
  "secretCoin",
  "tableNames",
];

async function minified(contents) {
  const stdin = { contents, resolveDir: folder };
  const bundled = await build({
    stdin,
    bundle: true,
    format: "esm",
    minify: true,
    charset: "utf8",
    mangleProps: new RegExp(`^(${OWN_PROPERTIES.join("|")})$`),
    write: false,
    target: "es2022",
  });
  const options = {
    module: true,
    ecma: 2020,
    // Of the switches that keep the meaning, these make it smaller.
    compress: { passes: 3, unsafe_arrows: true, unsafe_methods: true, comparisons: false, side_effects: false },
    format: { ascii_only: false },
  };
  return (await minify(bundled.outputFiles[0].text, options)).code;
}

const say = (what, code) =>
  console.log(
    `${what}: ${gzipSync(code, { level: 9 }).length} bytes with gzip, ${brotliCompressSync(code).length} with brotli`,
  );

const everything = await minified('export * from "./index.js";');
mkdirSync(out, { recursive: true });
writeFileSync(new URL("deniable.min.js", out), everything);
say("everything", everything);
for (const [what, names] of Object.entries(PAGES)) say(what, await minified(`export { ${names} } from "./index.js";`));
