import { Fault } from "#shared/fault/fault.ts";
import { keyState, type KeyRecord, type KeyState } from "#shared/keys/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";

export interface PageWish {
  readonly state?: KeyState | undefined;
  readonly limit: number;
  /** The last key of the page before, whatever its state is now. */
  readonly after?: KeyId | undefined;
}

/** Returns the next page of keys, in order of creation. Keys created at the same time are ordered by id. */
export function pageOfKeys(
  records: readonly KeyRecord[],
  { state, limit, after }: PageWish,
  nowMs: number,
): { readonly page: readonly KeyRecord[]; readonly hasMore: boolean } {
  const ordered = records.toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
  const last = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && last === -1) {
    throw new Fault("invalid_value", {
      message: "Invalid value for 'after': there is no such key any more; begin with the first page.",
      param: "after",
    });
  }
  const rest = ordered.slice(last + 1).filter((record) => state === undefined || keyState(record, nowMs) === state);
  return { page: rest.slice(0, limit), hasMore: rest.length > limit };
}
