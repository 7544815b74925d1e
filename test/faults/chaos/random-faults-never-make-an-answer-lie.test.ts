import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { sized, testTimeoutMs } from "../load/lane.ts";
import { soak, violationsIn } from "./soak.ts";

const streams = sized({ fast: 1_000, whole: 10_000 });
/** The second seed begins with the kills of a gateway and of a machine, so that answers are resumed and go on. */
const seeds = sized({ fast: [2], whole: [1, 2, 3] });

describe.skipIf(lentOnly("nats", "redis"))(`${streams} streams under random faults`, () => {
  test.for(seeds)(
    "streams under random faults of seed %i show no silent truncation and no foreign byte, and all is well afterwards",
    { timeout: testTimeoutMs },
    async (seed) => {
      const soaked = await soak({ streams, seed });
      const { ledger, reconnected, faults } = soaked;
      console.log(`${ledger.summary(`${faults.length} faults`)}\n${faults.join("\n")}`);
      console.log(reconnected.resumed.summary("resumed"), reconnected.repeated.summary("repeated"));
      expect(violationsIn(soaked, streams)).toEqual([]);
    },
  );
});
