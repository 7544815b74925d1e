import type { UnreadRecord } from "#shared/records/key-store.ts";
import type { Log } from "#shared/process/log.ts";
import { type RouteRecord, type RouteStore, RouteTable } from "#shared/records/route-record.ts";
import { ChangedRecords } from "./changed-records.ts";
import type { MachineRecords, RecordChange } from "./machine-records.ts";

interface RoutesOptions {
  readonly routes: Pick<RouteStore, "list" | "find">;
  readonly machines: Pick<MachineRecords, "labelled" | "onChange">;
  readonly log: Pick<Log, "info" | "warn">;
}

/** All routes of the site, as every gateway holds and follows them. */
export class RouteRecords {
  /** Is told of changes in the store, and reads the changed records again. */
  readonly follow: ChangedRecords;
  readonly #options: RoutesOptions;
  readonly #byName = new Map<string, RouteRecord>();
  #table = new RouteTable([]);

  constructor(options: RoutesOptions) {
    this.#options = options;
    options.machines.onChange((changes) => {
      if (changes.some(changesLabels)) this.#tabulate();
    });
    const readOne = async (name: string) => this.#keep(name, await options.routes.find(name));
    this.follow = new ChangedRecords({ of: "routes", readOne, readAll: () => this.load(), log: options.log });
  }

  get table(): RouteTable {
    return this.#table;
  }

  /** Reads all routes, or throws: a gateway that starts without them would answer with other models. */
  async load(): Promise<void> {
    const unread: UnreadRecord[] = [];
    const records = await this.#options.routes.list(unread);
    this.#byName.clear();
    // A route that this version cannot read leads to nothing, and not to a model of its name.
    for (const { name } of unread)
      this.#byName.set(name, { name, version: 1, targets: [], createdAt: 0, changedAt: 0 });
    for (const record of records) this.#byName.set(record.name, record);
    this.#tabulate();
  }

  #keep(name: string, record: RouteRecord | undefined): void {
    if (record === undefined) this.#byName.delete(name);
    else this.#byName.set(name, record);
    this.#tabulate();
  }

  #tabulate(): void {
    const { machines } = this.#options;
    this.#table = new RouteTable(this.#byName.values(), (label) => machines.labelled(label));
  }
}

/** True if a change of a machine's record changes which machines have a label. */
function changesLabels({ before, after }: RecordChange): boolean {
  const [was, now] = [before, after].map((record) => record?.labels?.join(" ") ?? "");
  return was !== now;
}
