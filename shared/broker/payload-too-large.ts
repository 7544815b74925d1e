import { Fault } from "../fault/fault.ts";

/** A message that the broker does not carry. Bodies and answers are cut to fit before; to see this is a bug. */
export function payloadTooLarge(bytes: number, payloadBytesMax: number): Fault {
  return new Fault("internal_error", {
    message: "A message inside Trunkline is larger than its broker carries.",
    internal: `a message of ${bytes} bytes is over the broker's payload limit of ${payloadBytesMax} bytes`,
  });
}
