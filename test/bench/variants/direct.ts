import type { Variant } from "./variant.ts";

/** What all others are held against: nothing stands between client and far end. */
export const direct: Variant = {
  name: "direct",
  title: "client to far end, with nothing between",
  version: () => Promise.resolve("none"),
  missing: () => Promise.resolve(undefined),
  start: ({ farEndPort }) =>
    Promise.resolve({
      ports: [farEndPort],
      headers: {},
      processes: [],
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
};
