import { brokerRows } from "./broker-rows.ts";
import { cellRows } from "./cell-rows.ts";
import { clientRows } from "./client-rows.ts";
import { gatewayRows } from "./gateway-rows.ts";
import { machineRows } from "./machine-rows.ts";
import { runtimeRows } from "./runtime-rows.ts";
import type { Scenario } from "./scenario.ts";

/**
 * The fault table: what may become of machines, runtimes, gateways, the broker and clients, row by row. CI runs the
 * scenarios that are marked `fast`, with the wire's times halved; `npm run test:faults` runs all of them with the wire's own
 * times, prints what each came to and how soon, and repeats what hangs on chance with three seeds (`lane.ts` says how to
 * run some of them). `tunnels.test.ts` runs those of machines and the broker once more, with machines behind tunnels.
 * `test/architecture/promises.txt` names the tests of all other rows.
 */
export const faultRows: readonly Scenario[] = [
  ...machineRows,
  ...runtimeRows,
  ...gatewayRows,
  ...brokerRows,
  ...clientRows,
  ...cellRows,
];

/** Rows that nothing here asserts, and why. */
export const unasserted: ReadonlyMap<number, string> = new Map([
  [
    28,
    "a gateway that turns requests away before its heap is full is held by a test of its own (integration/a-full-heap-takes-nothing-more); who starts one again that died is the operator's supervisor",
  ],
]);
