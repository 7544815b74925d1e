import { aliasedId } from "../protocol/model.ts";
import { externalEnd } from "../records/price-name.ts";
import { allows } from "../records/match-scope.ts";
import type { Prices } from "./price-terms.ts";

interface NamedPrices extends Prices {
  readonly name: string;
}

/** Models that a table remembers the prices of. */
const foundMax = 10_000;

/** All prices of a site at one moment, to look up a model. */
export class PriceTable {
  readonly isEmpty: boolean;
  readonly #everywhere: readonly NamedPrices[];
  /** Those for external machines, by names without their end. */
  readonly #external: readonly NamedPrices[];
  /** The answers so far: each stream under way asks several times a second. */
  readonly #found = new Map<string, Prices | undefined>();
  readonly #foundExternal = new Map<string, Prices | undefined>();

  constructor(prices: Iterable<NamedPrices>) {
    const all = ranked([...prices]);
    const external = all.filter(({ name }) => name.endsWith(externalEnd));
    this.#everywhere = all.filter((each) => !external.includes(each));
    this.#external = external.map((each) => ({ ...each, name: each.name.slice(0, -externalEnd.length) }));
    this.isEmpty = all.length === 0;
  }

  /** Returns the prices of a model: at an external machine those for external ones, and otherwise those for all. */
  find(model: string, isExternal: boolean): Prices | undefined {
    const found = isExternal ? this.#foundExternal : this.#found;
    if (found.size >= foundMax) found.clear();
    return found.getOrInsertComputed(model, () => {
      const id = aliasedId(model);
      return (isExternal ? fitting(this.#external, id) : undefined) ?? fitting(this.#everywhere, id);
    });
  }
}

/** Sorts the longest name first, and names of one length by text, so that all gateways agree. */
function ranked(prices: readonly NamedPrices[]): readonly NamedPrices[] {
  return prices.toSorted(({ name: one }, { name: other }) => other.length - one.length || (one < other ? -1 : 1));
}

/** Returns the prices with exactly this name, or else those with the first name that matches as a scope does. */
function fitting(prices: readonly NamedPrices[], id: string): NamedPrices | undefined {
  return prices.find(({ name }) => aliasedId(name) === id) ?? prices.find(({ name }) => allows([name], id));
}
