// One report of a stream without trust: 16 bytes, whatever it says.
//
//     byte 0 version, 1 phase, 2-3 tag, 4-7 y, 8-15 θ as a 64-bit float (0 in phase 1); big-endian
import { InvalidData } from "./errors.js";
import { fromHex, hex } from "./randomness.js";
import { sendable } from "./report.js";

const VERSION = 129,
  BYTES = 16;

export class StreamReport {
  constructor(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (bytes.length !== BYTES || view.getUint8(0) !== VERSION || ![1, 2].includes(view.getUint8(1)))
      throw new InvalidData("a report does not have 16 bytes of version 129", "Upgrade the older side.");
    this.bytes = bytes;
    [this.phase, this.tag, this.y, this.theta] = [
      view.getUint8(1),
      view.getUint16(2),
      view.getUint32(4),
      view.getFloat64(8),
    ];
    Object.freeze(this);
  }

  static of({ phase, tag, y, theta }) {
    const bytes = new Uint8Array(BYTES),
      to = new DataView(bytes.buffer);
    (to.setUint8(0, VERSION), to.setUint8(1, phase), to.setUint16(2, tag), to.setUint32(4, y), to.setFloat64(8, theta));
    return new StreamReport(bytes);
  }

  static fromHex(digits) {
    return new StreamReport(fromHex(digits));
  }

  toHex() {
    return hex(this.bytes);
  }

  /** The report with its user, as one line of JSON. */
  toJson(user) {
    return `{"uid":${sendable(user)},"report":"${this.toHex()}"}`;
  }
}
