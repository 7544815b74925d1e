import { brokerRows } from "./broker-rows.ts";
import { cellRows } from "./cell-rows.ts";
import { clientRows } from "./client-rows.ts";
import { gatewayRows } from "./gateway-rows.ts";
import { machineRows } from "./machine-rows.ts";
import { runtimeRows } from "./runtime-rows.ts";
import type { Scenario } from "./scenario.ts";

/**
 * The fault table: what may become of machines, runtimes, gateways, the broker and clients, row by row. `npm test` runs the
 * scenarios that are marked `fast`, with the wire's times halved; `npm run test:faults` runs all of them with the wire's own
 * times, prints what each came to and how soon, and repeats what hangs on chance with three seeds (`lane.ts` says how to
 * run some of them). Rows of Redis and of keys are in tests of their own beside these.
 */
export const faultRows: readonly Scenario[] = [
  ...machineRows,
  ...runtimeRows,
  ...gatewayRows,
  ...brokerRows,
  ...clientRows,
  ...cellRows,
];

/** Rows that are held by a test of another form: its file without `.test.ts`, from `test/`, and a piece of its name. */
export const elsewhere: readonly { readonly rows: readonly number[]; readonly file: string; readonly name: string }[] =
  [
    {
      rows: [14],
      file: "unit/gateway/what-failed-may-go-elsewhere",
      name: "lets one request through after a while, and others only once that has worked",
    },
    { rows: [17], file: "integration/runtime-faults/a-line-without-an-end-is-not-held", name: "in one line of %s" },
    {
      rows: [21],
      file: "system/the-newest-of-two-agents-of-one-name-counts",
      name: "the older stops with a reason and finishes what it has, and the newer serves",
    },
    {
      rows: [22],
      file: "faults/lost-frames-leave-no-hole",
      name: "are asked for again where they are missing, and the answer is exact",
    },
    {
      rows: [23],
      file: "system/seats-of-a-killed-gateway-are-free-again",
      name: "has taken no seat for longer than 30 s",
    },
    { rows: [29], file: "unit/gateway/an-error-body-has-four-keys", name: "of a bug says nothing of it" },
    { rows: [33], file: "faults/lost-frames-leave-no-hole", name: "are an error in the stream and no hole" },
    { rows: [36], file: "faults/a-crowd-comes-back-at-once", name: "none is forgotten" },
    { rows: [37], file: "faults/a-lame-duck-loses-nobody", name: "loses no stream of anybody who was on it" },
    {
      rows: [44],
      file: "faults/a-credential-that-is-taken-back",
      name: "is not ready, tells at once, asks ever more rarely, and serves when it is given back",
    },
    { rows: [59], file: "bad-inputs/slow-senders-are-told", name: "is told so, and its connection is closed" },
    { rows: [70], file: "faults/builds-of-other-ages-work-together", name: "is served whole" },
    {
      rows: [70],
      file: "system/an-older-agent-answers-in-newer-shapes",
      name: "its client gets a stream as they come",
    },
    { rows: [72], file: "faults/clients-that-repeat-do-not-multiply", name: "for each request that was admitted" },
    {
      rows: [73],
      file: "system/what-fails-before-its-first-word-costs-only-time",
      name: "by the request itself does not take the whole fleet along",
    },
  ];

/** Rows that nothing here asserts, and why. */
export const unasserted: ReadonlyMap<number, string> = new Map([
  [25, "a rolling restart under load is a load of its own, and not a scenario: see the tests of load"],
  [
    28,
    "a gateway that turns requests away before its heap is full is held by a unit test; who starts one again that died is the operator's supervisor",
  ],
  [71, "three times overload for a minute is a load of its own: see the tests of load"],
  [74, "one key's flood beside others is a load of its own: see the tests of load"],
]);
