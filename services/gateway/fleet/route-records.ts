import type { UnreadRecord } from "#shared/records/key-store.ts";
import type { Log } from "#shared/process/log.ts";
import { allows } from "#shared/records/match-scope.ts";
import type { RouteRecord, RouteStore } from "#shared/records/route-record.ts";
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
  table = new RouteTable([]);

  constructor(options: RoutesOptions) {
    this.#options = options;
    options.machines.onChange((changes) => {
      if (changes.some(changesLabels)) this.#tabulate();
    });
    const readOne = async (name: string) => this.#keep(name, await options.routes.find(name));
    this.follow = new ChangedRecords({ of: "routes", readOne, readAll: () => this.load(), log: options.log });
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
    this.table = new RouteTable(this.#byName.values(), (label) => machines.labelled(label));
  }
}

/** True if a change of a machine's record changes which machines have a label. */
function changesLabels({ before, after }: RecordChange): boolean {
  const [was, now] = [before, after].map((record) => record?.labels?.join(" ") ?? "");
  return was !== now;
}

/** All routes of a site, to look up a name that a client asks for. */
export class RouteTable {
  readonly #exact = new Map<string, RouteRecord>();
  readonly #patterns: readonly RouteRecord[];

  /** `labelled` returns the machines with a label. Targets with a label then name these machines. */
  constructor(routes: Iterable<RouteRecord>, labelled: (label: string) => readonly string[] = () => []) {
    const patterns: RouteRecord[] = [];
    for (const record of routes) {
      const targets = record.targets.map((target) =>
        target.label === undefined ? target : { ...target, machines: labelled(target.label) },
      );
      const route = { ...record, targets };
      if (route.name.includes("*")) patterns.push(route);
      else this.#exact.set(route.name, route);
    }
    // Patterns of the same length are sorted by text, so that all gateways agree.
    this.#patterns = patterns.toSorted(
      ({ name: one }, { name: other }) => other.length - one.length || (one < other ? -1 : 1),
    );
  }

  /** Returns the route for a name: the one with exactly this name, or else the one with the longest pattern. */
  find(asked: string): RouteRecord | undefined {
    return this.#exact.get(asked) ?? this.#patterns.find(({ name }) => allows([name], asked));
  }

  /** The names that are no patterns. Clients can ask for each of them as it is listed. */
  names(): Iterable<string> {
    return this.#exact.keys();
  }
}
