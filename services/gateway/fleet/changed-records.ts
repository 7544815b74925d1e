import type { Log } from "#shared/process/log.ts";

interface ChangedRecordsOptions {
  /** The subjects of the records in plural, for the log. */
  readonly of: string;
  readonly readOne: (name: string) => Promise<void>;
  readonly readAll: () => Promise<void>;
  readonly log: Pick<Log, "info" | "warn">;
}

/** Above this number of changed records, all records are read at once. */
const readOneByOneMax = 32;

/**
 * Reads records again that have changed in the store. The records that were read last stay in force while the store is
 * unavailable, and a read that failed is repeated when the store is heard again.
 */
export class ChangedRecords {
  readonly #options: ChangedRecordsOptions;
  /** The names of the records that are to be read again. */
  #due: Set<string> | "all" = new Set();
  #isReading = false;

  constructor(options: ChangedRecordsOptions) {
    this.#options = options;
  }

  /** Reads a record again, because it has changed. Undefined stands for all records. */
  changed(name?: string): void {
    this.#noteDue(name);
    this.heard();
  }

  /** Repeats a read that failed, because the store answers again. */
  heard(): void {
    if (this.#isDue() && !this.#isReading) void this.#readWhileDue();
  }

  #noteDue(name: string | undefined): void {
    if (name === undefined) this.#due = "all";
    else if (this.#due !== "all") this.#due.add(name);
  }

  #isDue(): boolean {
    return this.#due === "all" || this.#due.size > 0;
  }

  async #readWhileDue(): Promise<void> {
    const { of, log } = this.#options;
    this.#isReading = true;
    try {
      while (this.#isDue()) await this.#read();
      log.info(`changed records of ${of} were read`);
    } catch (error) {
      log.warn({ err: error }, `the records of ${of} cannot be read; those read before stand`);
    } finally {
      this.#isReading = false;
    }
  }

  async #read(): Promise<void> {
    const { readOne, readAll } = this.#options;
    const due = this.#due;
    this.#due = new Set();
    try {
      if (due === "all" || due.size > readOneByOneMax) await readAll();
      else for (const name of due) await readOne(name);
    } catch (error) {
      for (const name of due === "all" ? [undefined] : due) this.#noteDue(name);
      throw error;
    }
  }
}
