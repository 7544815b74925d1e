import { Fault } from "../fault/fault.ts";

/** What a store without the note of its peppers answers in place of a verdict. */
export function unfoundedStore(): Fault {
  return new Fault("backend_unavailable", {
    message: "The key store holds no keys: it was emptied, or is not the right one.",
    internal: "the key store was never used, or was emptied; restore it, or issue a key to begin anew",
  });
}

/** What a store answers to a key that was made with a pepper it does not know: nobody else could judge it. */
export function foreignPepper(): Fault {
  return new Fault("backend_unavailable", {
    message: "The keys in this store are made with another pepper.",
    internal: "another process has begun this store with another pepper meanwhile",
  });
}
