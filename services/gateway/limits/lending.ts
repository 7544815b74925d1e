/**
 * How a store lends places ahead of the requests that will need them. It lends from plenty only, for a moment, and while
 * anything is lent that a request is refused for, the request waits until it has come back: so places that nobody uses
 * refuse nobody.
 */

/** A gateway uses what it was lent for so long, from when it asked. */
export const lentPlaceUsableMs = 100;

/** From when places were lent until they are surely in use or given back, which goes with the books every 100 ms. */
export const lentForMsMax = 300;

/** Nothing is lent that would leave less than the rest of any limit free. */
export const lentShareMax = 0.5;
