/**
 * The rules by which a store lends places ahead of the requests that will need them. The store lends only from plenty,
 * and only for a moment. A request that is refused for something lent waits until that has come back. Unused places
 * therefore refuse no request.
 */

/** A gateway may use a lent place for this long, counted from when it asked for the place. */
export const lentPlaceUsableMs = 100;

/**
 * Within this time after a loan, each place is surely in use or given back. Places are given back with the books, every
 * 100 ms.
 */
export const lentForMsMax = 300;

/** The largest share of any limit that may be in use after a loan; the rest stays free. */
export const lentShareMax = 0.5;
