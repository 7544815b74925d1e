import type { RecordStore } from "#shared/records/key-store.ts";
import type { Log } from "#shared/process/log.ts";
import { ChangedRecords } from "../fleet/changed-records.ts";

interface NamedRecordsOptions<Kept> {
  readonly store: Pick<RecordStore<Kept>, "list" | "find">;
  /** The subjects of the records in plural, for the log. */
  readonly of: string;
  /** Is called with each record that is new or has changed. */
  readonly onChange?: (record: Kept) => void;
  readonly log: Pick<Log, "info" | "warn">;
}

interface FollowedRecord {
  readonly name: string;
  readonly version: number;
  readonly createdAt: number;
  readonly disabledAt?: number | undefined;
}

/** All records of one kind, as every gateway holds and follows them. Those read last stand while the store is away. */
export class NamedRecords<Kept extends FollowedRecord> {
  /** Is told of changes in the store, and reads the changed records again. */
  readonly follow: ChangedRecords;
  readonly #options: NamedRecordsOptions<Kept>;
  readonly #byName = new Map<string, Kept>();

  constructor(options: NamedRecordsOptions<Kept>) {
    this.#options = options;
    const { of, log } = options;
    this.follow = new ChangedRecords({ of, readOne: (name) => this.read(name), readAll: () => this.load(), log });
  }

  get(name: string): Kept | undefined {
    return this.#byName.get(name);
  }

  all(): readonly Kept[] {
    return [...this.#byName.values()];
  }

  async read(name: string): Promise<void> {
    this.#keep(name, await this.#options.store.find(name));
  }

  /** Reads all records, or throws: a gateway that starts without them would not know what holds for a key. */
  async load(): Promise<void> {
    const records = await this.#options.store.list();
    const names = new Set(records.map(({ name }) => name));
    for (const name of this.#byName.keys()) if (!names.has(name)) this.#byName.delete(name);
    for (const record of records) this.#keep(record.name, record);
  }

  #keep(name: string, record: Kept | undefined): void {
    const before = this.#byName.get(name);
    if (record === undefined) this.#byName.delete(name);
    else if (before === undefined || isNewer(record, before)) {
      this.#byName.set(name, record);
      this.#options.onChange?.(record);
    }
  }
}

/** False for the same record, and for an earlier version of a disabled one, as a store has it that fell back to an older copy of itself. */
function isNewer(record: FollowedRecord, before: FollowedRecord): boolean {
  if (record.createdAt !== before.createdAt || record.version > before.version) return true;
  return record.version < before.version && before.disabledAt === undefined;
}
