// One report of a stream without trust: 16 bytes. θ is 0 in phase 1.
import { PackedReport } from "./packed_report.js";
import { sendable } from "./report.js";

export class StreamReport extends PackedReport {
  static version = 129;
  static size = 16;
  static kinds = [1, 2];
  static fields = { phase: ["Uint8", 1], tag: ["Uint16", 2], y: ["Uint32", 4], theta: ["Float64", 8] };

  /** The report with its user, as one line of JSON. */
  toJson(user) {
    return `{"uid":${sendable(user)},"report":"${this.toHex()}"}`;
  }
}
