import { Fault } from "../fault/fault.ts";

/**
 * The fault for a message above the broker's payload limit. Bodies and answers are split to fit before, so it is a bug.
 */
export function payloadTooLarge(bytes: number, payloadBytesMax: number): Fault {
  return new Fault("internal_error", {
    message: "A message inside Trunkline is larger than its broker carries.",
    internal: `a message of ${bytes} bytes is over the broker's payload limit of ${payloadBytesMax} bytes`,
  });
}
