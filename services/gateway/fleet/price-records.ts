import { PriceTable } from "#shared/prices/price-table.ts";
import type { Log } from "#shared/process/log.ts";
import type { PriceRecord, PriceStore } from "#shared/records/price-record.ts";
import { ChangedRecords } from "./changed-records.ts";

interface PricesOptions {
  readonly prices: Pick<PriceStore, "list" | "find">;
  /** The word for the currency of the prices. */
  readonly currency: string;
  readonly log: Pick<Log, "info" | "warn">;
}

/** All prices of the site, as every gateway holds and follows them. */
export class PriceRecords {
  /** Is told of changes in the store, and reads the changed records again. */
  readonly follow: ChangedRecords;
  readonly currency: string;
  /** A table never changes, so that a request keeps the one of its admission. */
  table = new PriceTable([]);
  readonly #prices: PricesOptions["prices"];
  #byName = new Map<string, PriceRecord>();

  constructor({ prices, currency, log }: PricesOptions) {
    this.#prices = prices;
    this.currency = currency;
    const readOne = async (name: string) => {
      const record = await prices.find(name);
      if (record === undefined) this.#byName.delete(name);
      else this.#byName.set(name, record);
      this.table = new PriceTable(this.#byName.values());
    };
    this.follow = new ChangedRecords({ of: "prices", readOne, readAll: () => this.load(), log });
  }

  /** Reads all prices, or throws: a gateway that starts without them would give answers away. */
  async load(): Promise<void> {
    this.#byName = new Map((await this.#prices.list()).map((record) => [record.name, record]));
    this.table = new PriceTable(this.#byName.values());
  }
}
