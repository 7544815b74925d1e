import { Fault } from "../fault/fault.ts";
import { keyId, type KeyId } from "../keys/key-token.ts";
import type { KeyStore } from "./key-store.ts";

/**
 * Returns the ids of the keys that a filter means: the key of an id, and all keys of a name. The error never repeats the
 * text, since it may be a part of a key.
 */
export async function findKeys(text: string, keys: Pick<KeyStore, "list">): Promise<readonly KeyId[]> {
  const meant = (await keys.list()).filter(({ id, name }) => id === text || name === text).map(({ id }) => id);
  // The records and sums of a key that is forgotten are still found by its id.
  const id = keyId.safeParse(text);
  if (meant.length > 0 || id.success) return meant.length > 0 ? meant : [id.data as KeyId];
  const message = "No key has this id or this name: `trunkline keys list` shows the ids and names of all.";
  throw new Fault("key_not_found", { message, param: "key" });
}

/** Returns the names of keys by their ids. */
export async function namesOfKeys(keys: Pick<KeyStore, "list">): Promise<ReadonlyMap<string, string>> {
  return new Map((await keys.list()).map(({ id, name }) => [id, name]));
}
