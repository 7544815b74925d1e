import { Fault } from "#shared/fault/fault.ts";

/** What a request is refused with. */
export function faultThrownBy(read: () => unknown): Fault {
  try {
    read();
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
  throw new Error("the request was taken");
}
