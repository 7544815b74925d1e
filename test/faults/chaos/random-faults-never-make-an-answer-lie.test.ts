import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { sized, testTimeoutMs } from "../load/lane.ts";
import { soak, violationsIn } from "./soak.ts";

const streams = sized({ fast: 1_000, whole: 10_000 });
const seeds = sized({ fast: [1], whole: [1, 2, 3] });

describe.skipIf(lentOnly("nats", "redis"))(`${streams} streams under random faults`, () => {
  test.for(seeds)(
    "streams under random faults of seed %i show no silent truncation and no foreign byte, and all is well afterwards",
    { timeout: testTimeoutMs },
    async (seed) => {
      const soaked = await soak({ streams, seed });
      console.log(`${soaked.ledger.summary(`${soaked.faults.length} faults`)}\n${soaked.faults.join("\n")}`);
      expect(violationsIn(soaked, streams)).toEqual([]);
    },
  );
});
