import { defineConfig } from "vitest/config";
import { FaultTable } from "./test/faults/fault-table.ts";
import { laneOf } from "./test/faults/lane.ts";
import { ClosingLine } from "./test/harness/closing-line.ts";

const faultTable = laneOf(process.env).isWhole ? [new FaultTable()] : [];

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/global-setup.ts"],
    reporters: ["default", ...faultTable, new ClosingLine()],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // One for each core: tests mostly wait for servers and processes, and those have to run beside them.
    maxWorkers: "100%",
  },
});
