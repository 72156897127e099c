// Not run: `tsc --strict` reads it next to deniable.d.ts. Lines that must not compile say so.
import {
  BrowserStore,
  BudgetExceeded,
  Collection,
  FileStore,
  Ledger,
  ToPLClient,
  Uploader,
  type Report,
  type Store,
} from "deniable";

export async function page(text: string): Promise<Report | null> {
  const shop = await Collection.fromJson(text),
    ledger = new Ledger(new BrowserStore("ledger"), { limit: 8, pins: [shop] });
  const client = shop.client({ memory: new BrowserStore("memory"), user: "ann", ledger });
  const uploader = new Uploader(client, "https://collector.example", {
    queue: new FileStore("queue.json"),
    token: async () => "v1",
  }).start();
  await uploader.add("users", [{ age: 31, born: new Date(), marital: "single" }], {
    public: { city: "Rome" },
    round: 3,
  });
  const own: Store = { read: async () => null, write: async () => undefined };
  const { settings, theta } = await ToPLClient.fetch("https://collector.example", "shop", "baskets");
  const y: number = (await new ToPLClient({ ...settings, memory: own }).report(31, theta)).y;
  // @ts-expect-error a client without a memory would answer twice
  shop.client({ user: "ann" });
  // @ts-expect-error a row is an object of values
  await client.report("users", { age: [31] });
  // @ts-expect-error collections are read, not made
  new Collection();
  // @ts-expect-error a store needs both methods
  const half: Store = { read: async () => null };
  try {
    const report = await client.report("users", { age: 31 });
    const seen: bigint | undefined = report?.y;
    return seen === BigInt(y) ? report : null;
  } catch (problem) {
    return problem instanceof BudgetExceeded ? null : Promise.reject(half);
  }
}
