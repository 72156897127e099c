// Reports of a fixed length, whatever they say: a version, and numbers at fixed places, big-endian.
import { InvalidData } from "./errors.js";
import { fromHex, hex } from "./randomness.js";

/** The kinds of reports state their `version`, `size`, the `kinds` in byte 1, and `fields`: types and places by name. */
export class PackedReport {
  constructor(bytes) {
    const { version, size, kinds, fields } = this.constructor,
      view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length !== size || bytes[0] !== version || !kinds.includes(bytes[1]))
      throw new InvalidData(`a report does not have ${size} bytes of version ${version}`, "Upgrade the older side.");
    this.bytes = bytes;
    for (const [name, [type, place]] of Object.entries(fields)) this[name] = view[`get${type}`](place);
    Object.freeze(this);
  }

  static of(values) {
    const bytes = new Uint8Array(this.size),
      view = new DataView(bytes.buffer);
    bytes[0] = this.version;
    for (const [name, [type, place]] of Object.entries(this.fields)) view[`set${type}`](place, values[name]);
    return new this(bytes);
  }

  static fromHex(digits) {
    return new this(fromHex(digits));
  }

  toHex() {
    return hex(this.bytes);
  }
}
