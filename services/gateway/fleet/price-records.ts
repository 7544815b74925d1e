import { PriceTable } from "#shared/prices/price-table.ts";
import type { Log } from "#shared/process/log.ts";
import type { PriceStore } from "#shared/records/price-record.ts";
import { ChangedRecords } from "./changed-records.ts";

interface PricesOptions {
  readonly prices: Pick<PriceStore, "list">;
  /** The word for the currency of the prices. */
  readonly currency: string;
  readonly log: Pick<Log, "info" | "warn">;
}

/** All prices of the site, as every gateway holds and follows them. */
export class PriceRecords {
  /** Is told of changes in the store. They are few, so that all prices are read again. */
  readonly follow: ChangedRecords;
  readonly currency: string;
  /** A table never changes, so that a request keeps the one of its admission. */
  table = new PriceTable([]);
  readonly #prices: PricesOptions["prices"];

  constructor({ prices, currency, log }: PricesOptions) {
    this.#prices = prices;
    this.currency = currency;
    const load = (): Promise<void> => this.load();
    this.follow = new ChangedRecords({ of: "prices", readOne: load, readAll: load, log });
  }

  /** Reads all prices, or throws: a gateway that starts without them would give answers away. */
  async load(): Promise<void> {
    this.table = new PriceTable(await this.#prices.list());
  }
}
