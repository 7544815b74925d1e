import { permits, type MachineRecord, type MachineStore } from "#shared/machines/machine-record.ts";
import type { Log } from "#shared/process/log.ts";

interface PermittedOptions {
  readonly machines: Pick<MachineStore, "list">;
  readonly log: Pick<Log, "info" | "warn">;
}

/**
 * The models that each machine may offer, by the records beside the keys. A machine without a record may offer every
 * model. The records that were read last stay in force while the store is unavailable.
 */
export class PermittedModels {
  readonly #options: PermittedOptions;
  #records: ReadonlyMap<string, MachineRecord> = new Map();
  #isDue = false;
  #isReading = false;
  #onChange: () => void = () => undefined;

  constructor(options: PermittedOptions) {
    this.#options = options;
  }

  permits(machine: string, modelId: string): boolean {
    return permits(this.#records.get(machine), modelId);
  }

  /** Sets the listener that is called after each change of the records. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Reads all records, or throws: a gateway that starts without them would believe every machine. */
  async load(): Promise<void> {
    const records = await this.#options.machines.list();
    this.#records = new Map(records.map((record) => [record.name, record]));
  }

  /** Reads all records again, because one has changed. Records are few and change seldom. */
  changed(): void {
    this.#isDue = true;
    if (!this.#isReading) void this.#readWhileDue();
  }

  /** Repeats a read that failed, because the store answers again. */
  heard(): void {
    if (this.#isDue) this.changed();
  }

  async #readWhileDue(): Promise<void> {
    const { log } = this.#options;
    this.#isReading = true;
    try {
      while (this.#isDue) {
        this.#isDue = false;
        await this.load();
        this.#onChange();
        log.info({ machines: this.#records.size }, "the records of machines were read");
      }
    } catch (error) {
      this.#isDue = true;
      log.warn({ err: error }, "the records of machines cannot be read; those read before stand");
    } finally {
      this.#isReading = false;
    }
  }
}
