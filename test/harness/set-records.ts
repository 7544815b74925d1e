import type { Prices } from "#shared/prices/price-terms.ts";
import { priceTermNames } from "#shared/prices/price-terms.ts";
import { type RecordSite, removeRecord, setRecord } from "#shared/records/change-record.ts";
import { priceForm, type PriceStore } from "#shared/records/price-record.ts";
import { routeForm, type RouteStore, type RouteTarget } from "#shared/records/route-record.ts";

type RouteSite = RecordSite & { readonly routes: RouteStore };
type PriceSite = RecordSite & { readonly prices: PriceStore };

/** Sets the targets of a route, as the operation does. */
export const setRoute = (name: string, targets: readonly RouteTarget[], site: RouteSite) =>
  setRecord(routeForm, { name }, () => ({ targets }), site);
export const removeRoute = (name: string, site: RouteSite) => removeRecord(routeForm, name, site);

/** Sets all prices of a model, as the operation does. */
export const setPrice = (name: string, prices: Prices, site: PriceSite) => {
  const fields = Object.fromEntries(priceTermNames.map((term) => [term, prices[term]]));
  return setRecord(priceForm, { name }, () => fields, site);
};
export const removePrice = (name: string, site: PriceSite) => removeRecord(priceForm, name, site);
