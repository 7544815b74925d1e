/**
 * What stands in the way of every request and can be switched off for a measurement, though in no set-up of the product:
 * each by a file of its name, which Node loads before the process and which takes the feature's part of the code away.
 */
export const switchable = ["credit", "liveness", "log", "meters", "usage"] as const;

export type Switchable = (typeof switchable)[number];
