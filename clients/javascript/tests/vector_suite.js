// All test vectors through a build of the package, in Node.js and in browsers: the same draws, the same bytes.

/** Draws that are read from a list of (bound, number), and refused where another bound is asked for. */
export function replayed(list) {
  const left = [...list];
  const randbelow = (bound) => {
    const [expected, drawn] = left.shift() ?? [];
    if (expected !== String(bound)) throw new Error(`drew below ${bound}, and not below ${expected}`);
    return BigInt(drawn);
  };
  return { left, randbelow };
}

/** A row of a vector: dates and times are written as {"date": …} and {"time": …}. */
const fromVector = (value) => {
  if (Array.isArray(value)) return value.map(fromVector);
  if (value === null || typeof value !== "object") return value;
  if ("date" in value) return new Date(value.date);
  if ("time" in value) return new Date(`${value.time.slice(0, 23)}Z`);
  return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, fromVector(entry)]));
};

function compare(sent, expected, draws, where) {
  const bytes = sent.map((report) => report.toHex());
  if (bytes.join() !== expected.join() || draws.left.length) throw new Error(`${where} differs`);
}

/** The vectors of a file, each with the text of its specification as the file has it. */
function vectorsOf(text, count) {
  const vectors = JSON.parse(text);
  const specifications = text
    .split(/"specification": ?/)
    .slice(1)
    .map((rest) => rest.slice(0, rest.search(/, ?"sha256"/)));
  if (vectors.length !== count) throw new Error(`expected ${count} vectors, got ${vectors.length}`);
  return vectors.map((vector, index) => ({ ...vector, text: specifications[index], where: `vector ${index}` }));
}

/** Repeats every vector; the result says how many there were. */
export async function repeatVectors({ Collection, ProcessStore, ToPLClient }, texts) {
  for (const { text, sha256, table, user, rows, draws, reports, where } of vectorsOf(texts.reports, 104)) {
    const collection = await Collection.fromJson(text),
      replay = replayed(draws);
    if (collection.sha256 !== sha256) throw new Error(`${where} has another hash`);
    const client = collection.client({ memory: new ProcessStore(), user, randbelow: replay.randbelow });
    compare(await client.reports(table, fromVector(rows)), reports, replay, where);
    compare(await client.reports(table, fromVector(rows)), reports, replay, `${where}, asked again,`);
  }
  for (const { text, table, user, rows, draws, reports, where } of vectorsOf(texts.rounds, 18)) {
    const collection = await Collection.fromJson(text);
    let replay;
    const client = collection.client({
      memory: new ProcessStore(),
      user,
      randbelow: (bound) => replay.randbelow(bound),
    });
    for (const [index, held] of rows.entries()) {
      replay = replayed(draws[index]);
      compare(
        await client.reports(table, fromVector(held), index + 1),
        reports[index],
        replay,
        `round ${index + 1} of ${where}`,
      );
    }
  }
  const streams = JSON.parse(texts.streams);
  for (const { settings, value, theta, draws, report } of streams) {
    const replay = replayed(draws),
      client = new ToPLClient({ memory: new ProcessStore(), randbelow: replay.randbelow, ...settings });
    compare([await client.report(value, theta)], [report], replay, "a stream's report");
  }
  return { tables: 95, rounds: 18, streams: streams.length };
}
