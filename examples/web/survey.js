// A survey of three questions: what stays in the browser, and every byte that leaves it.
import { BrowserStore, Collection, Ledger, Uploader } from "../../clients/javascript/src/index.js";

const COLLECTOR = new URLSearchParams(location.search).get("collector") ?? "http://127.0.0.1:8710";
const byId = (id) => document.getElementById(id);
const say = (text) => (byId("status").textContent = text);
const WAITS = "It waits here until the collector can be reached, also after the page is closed.";

/** A name for this browser, drawn once. */
async function userOf(store) {
  return store.alone(async () => {
    const known = await store.read(),
      user = known ?? crypto.randomUUID();
    if (!known) await store.write(user);
    return user;
  });
}

const FIELDS = [
  [0, 1, "version of the format"],
  [1, 2, "coins: the view below follows from your random name"],
  [2, 4, "slot: the first report"],
  [4, 8, "round: none"],
  [8, 16, "tag: first bytes of the hash of the survey"],
  [16, 20, "view: which of your answers, and how coarsely"],
  [20, 24, "seed of a hash; zeros if the view is small"],
  [24, 32, "y: your answer in this view, or a random other one"],
];

function rowOf(...texts) {
  const row = document.createElement("tr");
  row.append(...texts.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
  return row;
}

function show(answers, report, line, { spent, limit }) {
  const digits = report.toHex();
  byId("sent").replaceChildren(
    ...FIELDS.map(([from, to, meaning]) =>
      rowOf(
        to - from > 1 ? `${from}–${to - 1}` : `${from}`,
        digits.slice(2 * from, 2 * to).replace(/../g, "$& "),
        meaning,
      ),
    ),
  );
  const kept = { ...answers, "spent of your limit": `ε = ${Number(spent.toFixed(2))} of ${limit}` };
  byId("line").textContent = line;
  byId("kept").replaceChildren(
    ...Object.entries(kept).flatMap(([name, value]) => [
      Object.assign(document.createElement("dt"), { textContent: name }),
      Object.assign(document.createElement("dd"), { textContent: value }),
    ]),
  );
}

async function start() {
  const survey = await Collection.fromJson(await (await fetch("survey.json")).text());
  byId("odds").textContent = Math.exp(survey.epsilonPerReport("answers")).toFixed(1);
  const user = await userOf(new BrowserStore("survey user")),
    ledger = new Ledger(new BrowserStore("survey ledger"), { limit: survey.epsilon, pins: [survey] });
  const client = survey.client({ memory: new BrowserStore("survey memory"), ledger, user });
  const uploader = new Uploader(client, COLLECTOR, { queue: new BrowserStore("survey queue") });

  async function delivered() {
    for (let tries = 0; (await uploader.waiting()) && tries < 600; tries++) {
      if (tries === 20) say(WAITS);
      await new Promise((wake) => setTimeout(wake, 100));
    }
    const refusals = Object.keys(uploader.refused);
    if (await uploader.waiting()) say(WAITS);
    else if (refusals.length) say(`The collector refused it: ${refusals}.`);
    else say("Delivered. Answer again, and the same bytes are sent: nothing more is spent.");
  }

  byId("survey").addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    const answers = { days: Number(given.days), travel: given.travel, content: Number(given.content) };
    try {
      const report = await client.report("answers", answers);
      show(answers, report, report.toJson(user, "answers"), await ledger.balance());
      await uploader.add("answers", [answers]);
      await delivered();
    } catch (problem) {
      say(problem.message);
    }
  });
  uploader.start({ onProblem: (problem) => say(problem.message) });
  if (!(await ledger.entries()).length) say("Nothing has left this browser.");
  else say("This browser has answered before. Answer again to see the bytes that left: they stay the same.");
}

start().catch((problem) => say(problem.message));
