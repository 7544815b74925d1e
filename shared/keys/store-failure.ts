import { Fault } from "../fault/fault.ts";

export class UnfoundedStore extends Fault {}

/** Returns the fault of a store without a record of its peppers. Such a store gives no verdict. */
export function unfoundedStore(): UnfoundedStore {
  return new UnfoundedStore("backend_unavailable", {
    message: "The key store holds no keys: it was emptied, or is not the right one.",
    internal: "the key store was never used, or was emptied; restore it, or issue a key to begin anew",
  });
}

/**
 * Returns the fault for a key that was made with a pepper unknown to the store. No other process could judge that key.
 */
export function foreignPepper(): Fault {
  return new Fault("backend_unavailable", {
    message: "The keys in this store are made with another pepper.",
    internal: "another process has begun this store with another pepper meanwhile",
  });
}
