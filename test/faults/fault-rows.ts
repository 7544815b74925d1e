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
 * run some of them). `tunnels.test.ts` runs those of machines and the broker once more, with machines behind tunnels. Rows
 * of Redis and of keys are in tests of their own beside these.
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
      file: "unit/gateway/failed-jobs-go-to-another-machine",
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
    {
      rows: [25],
      file: "faults/load/a-rolling-restart-fails-nobody",
      name: "each restarted by SIGTERM, one after the other under load",
    },
    { rows: [29], file: "unit/gateway/an-error-body-has-four-keys", name: "of a bug says nothing of it" },
    { rows: [33], file: "faults/lost-frames-leave-no-hole", name: "are an error in the stream and no hole" },
    {
      rows: [36],
      file: "faults/load/two-hundred-agents-are-back-within-seconds",
      name: "at every gateway, and none is forgotten",
    },
    {
      rows: [37],
      file: "faults/load/a-nats-server-that-retires-takes-no-stream-along",
      name: "one retires as lame duck under load: its clients move to the others, and no stream fails",
    },
    {
      rows: [44],
      file: "faults/a-credential-that-is-taken-back",
      name: "is not ready, tells at once, asks ever more rarely, and serves when it is given back",
    },
    { rows: [59], file: "bad-inputs/slow-senders-are-told", name: "is told so, and its connection is closed" },
    { rows: [70], file: "faults/builds-of-other-ages-work-together", name: "is served whole" },
    {
      rows: [70],
      file: "faults/builds-of-other-ages-work-together",
      name: "that speaks %s is named as such to operators and is asked for nothing",
    },
    {
      rows: [71],
      file: "faults/load/three-times-too-much-is-served-as-much-as-ever",
      name: "leave at least 90 % of the capacity for served ones, and the others are told to come back",
    },
    { rows: [72], file: "faults/clients-that-repeat-do-not-multiply", name: "for each request that was admitted" },
    {
      rows: [73],
      file: "system/a-failure-before-the-first-token-costs-only-time",
      name: "by the request itself does not take the whole fleet along",
    },
    {
      rows: [74],
      file: "faults/load/a-noisy-key-does-not-starve-others",
      name: "it is refused, and every request of the others is served",
    },
    {
      rows: [75],
      file: "faults/a-thin-line-only-slows-down",
      name: "60 streams of 100 tokens/s over 125 KB/s",
    },
    {
      rows: [76],
      file: "faults/a-machine-that-is-far-away-does-not-flap",
      name: "connects, stays there, and answers every chat",
    },
    {
      rows: [77],
      file: "faults/a-model-server-that-works-is-never-taken-for-dead",
      name: "a runtime whose model list takes three seconds keeps its models, idle or busy",
    },
    {
      rows: [77],
      file: "faults/a-model-server-that-works-is-never-taken-for-dead",
      name: "a runtime of unknown kind is asked nothing while it answers, and its answer is whole",
    },
    {
      rows: [78],
      file: "faults/a-model-server-that-works-is-never-taken-for-dead",
      name: "a chat whose kept connection the runtime closes as it is sent is answered by the only machine",
    },
    {
      rows: [79],
      file: "faults/a-model-server-that-works-is-never-taken-for-dead",
      name: "a stream that ends in [DONE] without a finish reason is a success, and the log says so once",
    },
    {
      rows: [80],
      file: "faults/a-revocation-survives-a-failover",
      name: "a gateway keeps to every right that was taken away although the promoted replica never heard of it",
    },
    {
      rows: [81],
      file: "faults/keys-expire-by-the-clock-of-redis",
      name: "a gateway serves a key until it expires by the clock of Redis, and not longer",
    },
    {
      rows: [82],
      file: "faults/an-emptied-store-is-told-everywhere",
      name: "is not ready, says so in readiness, metric, log and status, and is well again once a key is issued",
    },
    {
      rows: [83],
      file: "faults/an-outage-grants-a-share-once",
      name: "gets no more of two gateways than both their shares, however often Redis goes",
    },
    {
      rows: [84],
      file: "faults/a-gateway-that-wakes-opens-no-breaker",
      name: "blames no machine for streams that ended meanwhile, and finds it at once",
    },
    {
      rows: [85],
      file: "bad-inputs/a-prompt-that-a-runtime-quotes-reaches-no-log",
      name: "leaves every failure with its reason in the log of the machine, and with its code at the gateway",
    },
    {
      rows: [86],
      file: "faults/status-and-route-name-the-true-reason",
      name: "say that the broker is away while NATS is gone, and call no machine offline",
    },
    {
      rows: [86],
      file: "faults/a-grant-that-is-too-narrow-is-told",
      name: "that lacks tl1.reply is told by the agent, the gateway, `status` and `route`, until it is mended",
    },
    {
      rows: [87],
      file: "faults/load/a-target-whose-machines-are-killed-fails-nobody",
      name: "without an answer that had no first token, and cut the others exactly",
    },
    {
      rows: [88],
      file: "faults/load/an-answer-goes-on-when-its-machine-is-killed",
      name: "killed in turn",
    },
    {
      rows: [89],
      file: "faults/load/an-answer-goes-on-when-its-machine-is-killed",
      name: "drained by SIGTERM one after the other, hand their answers over and end none",
    },
    {
      rows: [90],
      file: "faults/load/streams-are-resumed-over-and-over",
      name: "times in all and by killed gateways too, get every character once",
    },
    {
      rows: [91],
      file: "faults/load/retries-of-official-clients-make-one-answer",
      name: "answers by its own retries over three gateways, each made and counted once",
    },
    {
      rows: [92],
      file: "system/a-killed-gateway-has-counted-its-answers",
      name: "a second kill books nothing twice",
    },
  ];

/** Rows that nothing here asserts, and why. */
export const unasserted: ReadonlyMap<number, string> = new Map([
  [
    28,
    "a gateway that turns requests away before its heap is full is held by a test of its own (integration/a-full-heap-takes-nothing-more); who starts one again that died is the operator's supervisor",
  ],
]);
