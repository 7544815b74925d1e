import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { FaultTable } from "./test/faults/fault-table.ts";
import { laneOf } from "./test/faults/lane.ts";
import { ClosingLine } from "./test/harness/closing-line.ts";

const faultTable = laneOf(process.env).isWhole ? [new FaultTable()] : [];
/** Files of a worker share their modules, which keep no state: to load and compile them anew for each takes half the time. */
const shared = { testTimeout: 20_000, hookTimeout: 60_000, isolate: false };
/** No servers: unit tests, and the tests that compare sources with tables. */
const pure = ["test/{unit,architecture}/**/*.test.ts", "test/**/every-*.test.ts"];
/** Simulations go on turn by turn of the event loop, so that whatever else is in their process slows them: each has its own. */
const simulated = ["test/slow/{models-are-placed,routers-are-compared}-*.test.ts"];

export default defineConfig({
  test: {
    reporters: ["default", ...faultTable, new ClosingLine()],
    // Three for two cores: tests mostly wait for servers and processes, which use less than half of a core each.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    projects: [
      { test: { ...shared, name: "unit", include: pure } },
      { test: { ...shared, name: "simulated", include: simulated, isolate: true } },
      // Only these need servers: `npm run test:unit` runs on a machine that has neither NATS nor Redis.
      {
        test: {
          ...shared,
          name: "real",
          include: ["test/**/*.test.ts"],
          exclude: [...pure, ...simulated],
          globalSetup: ["test/harness/global-setup.ts"],
        },
      },
    ],
  },
});
