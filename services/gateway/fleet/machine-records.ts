import { type MachineRecord, type MachineStore, permits, type SiteRecord } from "#shared/records/machine-record.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { UnreadRecord } from "#shared/records/key-store.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { ChangedRecords } from "./changed-records.ts";

interface RecordsOptions {
  readonly machines: Pick<MachineStore, "list" | "find" | "findByKey" | "site">;
  readonly timing: Pick<Timing, "renamedWorksMs">;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "info" | "warn">;
}

/** A record that was added, changed or removed. A renamed machine is removed under its old name `renamedWorksMs` later. */
export interface RecordChange {
  readonly name: string;
  readonly before: MachineRecord | undefined;
  readonly after: MachineRecord | undefined;
}

/** True if the machine is no longer the site's under this name: it was revoked, or was renamed, or the name is another's. */
export function losesMachine({ before, after }: RecordChange): boolean {
  if (before?.revokedAt !== undefined) return false;
  const isOther = before?.publicKey !== undefined && before.publicKey !== after?.publicKey;
  return isOther || after?.revokedAt !== undefined;
}

/** The reasons why a machine gets no new jobs. A revoked machine also loses those that run. */
export type Barred = "revoked" | "cordoned";

/**
 * The records of all machines, as every gateway holds and follows them. The records that were read last stay in force
 * while the store is unavailable.
 */
export class MachineRecords {
  /** Is told of changes in the store, and reads the changed records again. */
  readonly follow: ChangedRecords;
  readonly #options: RecordsOptions;
  readonly #byName = new Map<string, MachineRecord>();
  readonly #byKey = new Map<string, MachineRecord>();
  readonly #barred = new Map<string, Barred>();
  readonly #external = new Set<string>();
  readonly #listeners: ((changes: readonly RecordChange[]) => void)[] = [];
  /** The timers that end machines under their old names. */
  readonly #ends = new Set<Timer>();
  #site: SiteRecord | undefined;

  constructor(options: RecordsOptions) {
    this.#options = options;
    const readOne = async (name: string) => this.#tell(this.#keep(name, await options.machines.find(name)));
    this.follow = new ChangedRecords({ of: "machines", readOne, readAll: () => this.load(), log: options.log });
  }

  /** The site that the machines are paired with. Machines sign its id. */
  get site(): SiteRecord {
    if (this.#site === undefined) throw new Error("the records of machines were not loaded");
    return this.#site;
  }

  /** The number of records. */
  get size(): number {
    return this.#byName.size;
  }

  all(): Iterable<MachineRecord> {
    return this.#byName.values();
  }

  get(machine: string): MachineRecord | undefined {
    return this.#byName.get(machine);
  }

  /** Returns the record of the machine with this public key, revoked or not, if this gateway knows it. */
  getByKey(publicKey: string): MachineRecord | undefined {
    return this.#byKey.get(publicKey);
  }

  /** Like `getByKey`, and asks the store for an unknown key: another gateway may have paired the machine a moment ago. */
  async findByKey(publicKey: string): Promise<MachineRecord | undefined> {
    const known = this.getByKey(publicKey);
    if (known !== undefined) return known;
    const found = await this.#options.machines.findByKey(publicKey);
    const isNewer = found !== undefined && found.version > (this.#byName.get(found.name)?.version ?? 0);
    if (isNewer) this.#tell(this.#keep(found.name, found));
    return this.#byKey.get(publicKey);
  }

  /**
   * The machines whose models run elsewhere, by their records. A name stays here when its record is gone, as after a
   * renaming or in an emptied store: an agent may still be there under it.
   */
  get external(): ReadonlySet<string> {
    return this.#external;
  }

  /** Returns the names of the machines with a label. */
  labelled(label: string): readonly string[] {
    const records = [...this.#byName.values()].filter(({ labels }) => labels?.includes(label));
    return records.map(({ name }) => name);
  }

  permits(machine: string, modelId: string): boolean {
    return permits(this.#byName.get(machine), modelId);
  }

  /** Returns why a machine gets no new jobs; undefined for any other machine, also for one without a record. */
  barred(machine: string): Barred | undefined {
    return this.#barred.get(machine);
  }

  /** Adds a listener that is called after each change of records, with the changes. */
  onChange(listener: (changes: readonly RecordChange[]) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads all records, or throws: a gateway that starts without them would believe every machine. */
  async load(): Promise<void> {
    const { machines } = this.#options;
    this.#site = await machines.site();
    const unread: UnreadRecord[] = [];
    const records = await machines.list(unread);
    // A record that this version cannot read may revoke its machine.
    for (const { name } of unread) this.#barred.set(name, "revoked");
    const names = new Set([...records, ...unread].map(({ name }) => name));
    const gone = [...this.#byName.keys()].filter((name) => !names.has(name));
    this.#tell([
      ...gone.flatMap((name) => this.#keep(name, undefined)),
      ...records.flatMap((record) => this.#keep(record.name, record)),
    ]);
  }

  stop(): void {
    for (const end of this.#ends) end.cancel();
  }

  /**
   * Keeps a record in place of what was known of its name. A machine that was renamed works on under its old name too,
   * until it has finished there. A revocation ends it under both.
   */
  #keep(name: string, after: MachineRecord | undefined): RecordChange[] {
    const before = this.#byName.get(name);
    if (before?.version === after?.version && before?.createdAt === after?.createdAt) return [];
    // A store that fell back to an older copy of itself knows nothing of the revocation or the mark.
    const isRestricted = before?.revokedAt !== undefined || before?.external === true;
    if (after !== undefined && isRestricted && isOlder(after, before)) return [];
    if (after === undefined && before?.revokedAt !== undefined) this.#external.delete(name);
    const key = (after ?? before)?.publicKey ?? "";
    const current = this.#byKey.get(key);
    if (after !== undefined && current !== undefined && current.name !== name) this.#endLater(current);
    const isOver = current?.name === name && (after === undefined || after.revokedAt !== undefined);
    const ended = isOver ? [...this.all()].filter((each) => each.publicKey === key && each.name !== name) : [];
    for (const each of ended) this.#drop(each);
    if (before !== undefined) this.#drop(before);
    if (after !== undefined) this.#add(after);
    return [...ended.map((each) => ({ name: each.name, before: each, after: undefined })), { name, before, after }];
  }

  /** Ends a machine under its old name, unless another machine has that name by then. */
  #endLater(former: MachineRecord): void {
    const { clock, timing } = this.#options;
    const end = clock.after(timing.renamedWorksMs, () => {
      this.#ends.delete(end);
      if (this.#byName.get(former.name) === former) this.#tell(this.#keep(former.name, undefined));
    });
    this.#ends.add(end);
  }

  #drop(record: MachineRecord): void {
    const { name, publicKey = "" } = record;
    this.#byName.delete(name);
    this.#barred.delete(name);
    if (this.#byKey.get(publicKey) === record) this.#byKey.delete(publicKey);
  }

  #add(record: MachineRecord): void {
    const { name, publicKey, revokedAt, cordon, external } = record;
    if (external) this.#external.add(name);
    else this.#external.delete(name);
    this.#byName.set(name, record);
    if (publicKey !== undefined) this.#byKey.set(publicKey, record);
    if (revokedAt !== undefined) this.#barred.set(name, "revoked");
    else if (cordon !== undefined) this.#barred.set(name, "cordoned");
  }

  #tell(changes: readonly RecordChange[]): void {
    if (changes.length > 0) for (const listener of this.#listeners) listener(changes);
  }
}

/** True if a record was made before another, or is an earlier version of it. A name may be removed and made anew. */
function isOlder(one: MachineRecord, other: MachineRecord): boolean {
  if (one.createdAt !== other.createdAt) return one.createdAt < other.createdAt;
  return one.version < other.version;
}
