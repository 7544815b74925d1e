import type { FoundKey, KeyRecord } from "#shared/records/key-record.ts";
import { mintKeyToken, type KeyId, type KeyToken } from "#shared/keys/key-token.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { Fault } from "#shared/fault/fault.ts";

export const pepper = pepperText.parse("a pepper that is long enough to be one");
export const peppers = new Peppers(pepper);

/** A key that may use every model, or as told, and its record. */
export function keyOf(fields: Partial<KeyRecord> = {}): { readonly token: KeyToken; readonly record: KeyRecord } {
  const token = mintKeyToken();
  const digest = token.digest(pepper);
  const own = { id: token.id, version: 0, kind: "model", name: "alice", digest, pepper: pepper.fingerprint } as const;
  return { token, record: { ...own, scopes: ["*"], createdAt: 0, expiresAt: 10, ...fields } };
}

/** A store that a test fills, that counts how often it is asked, and that can be away. */
export class StoreOfATest {
  readonly records = new Map<KeyId, KeyRecord>();
  asked = 0;
  away = false;
  /** It answers when this resolves. */
  answers: Promise<void> = Promise.resolve();
  /** Runs while the store is being asked, before it answers. */
  meanwhile: () => void = () => undefined;

  add(fields: Partial<KeyRecord> = {}): ReturnType<typeof keyOf> {
    const made = keyOf(fields);
    this.records.set(made.record.id, made.record);
    return made;
  }

  change(id: KeyId, fields: Partial<KeyRecord>): void {
    const record = this.records.get(id);
    if (record !== undefined) this.records.set(id, { ...record, ...fields });
  }

  async find(id: KeyId): Promise<FoundKey> {
    this.asked += 1;
    if (this.away) throw new Fault("backend_unavailable", { message: "The store is away." });
    const record = this.records.get(id);
    await this.answers;
    this.meanwhile();
    return record === undefined ? { kind: "absent" } : { kind: "record", record };
  }
}
