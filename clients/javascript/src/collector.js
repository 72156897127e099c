// What a collector says about its collection, its streams and its address.
import { Failure, InvalidData, InvalidParameter } from "./errors.js";
import { readJson } from "./strict_json.js";

/** The address of a collection at a collector. */
export function addressOf(url, name) {
  let address;
  try {
    address = new URL(url, globalThis.location?.href);
  } catch {
    // not an address
  }
  if (!address || !/^https?:$/.test(address.protocol))
    throw new InvalidParameter("url", "is not an address", "Write https://collector.example.");
  return `${address.origin}${address.pathname.replace(/\/+$/, "")}/v1/collections/${encodeURIComponent(name)}`;
}

/** What `GET /v1/collections/NAME` answers, as `readJson` gives it. */
export async function describedBy(url, name) {
  const address = addressOf(url, name);
  let response, text;
  try {
    response = await fetch(address, { credentials: "omit" });
    text = await response.text();
  } catch {
    throw new Failure("the collector cannot be reached. Nothing was sent. Try again later.");
  }
  if (!response.ok)
    throw new Failure(`the collector answered with status ${response.status}. Nothing was sent. Check the address.`);
  const described = readJson(text);
  if (described.simulation !== false)
    throw new InvalidData("the collector runs a simulation, which protects nobody", "Use another collector.");
  return described;
}
