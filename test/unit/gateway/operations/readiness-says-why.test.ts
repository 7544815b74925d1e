import { beforeEach, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { BrokerWatch } from "../../../../services/gateway/metrics/backing-meters.ts";
import { readiness, type Readiness } from "../../../../services/gateway/operations/health-and-metrics.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

const answersWithinMs = 200;

let clock: TurnableClock;
let turn: (connected: boolean) => void;
let parts: Parameters<typeof readiness>[0];
beforeEach(() => {
  clock = new TurnableClock();
  const broker = {
    connected: true,
    trouble: "NATS cannot be reached",
    onChange(listener: (connected: boolean) => void) {
      turn = (connected) => {
        broker.connected = connected;
        listener(connected);
      };
      return { end: () => undefined };
    },
  };
  parts = {
    broker,
    brokerWatch: new BrokerWatch(broker, clock),
    keys: { ready: async () => undefined },
    knownKeys: { usableWhileStoreAway: false },
    clock,
    draining: () => false,
  };
});
const failing = async (): Promise<never> => {
  throw new Fault("backend_unavailable", { message: "Redis is away." });
};
const hanging = (): Promise<void> => new Promise(() => undefined);

async function told(changes: Partial<typeof parts> = {}): Promise<Readiness> {
  const answer = readiness({ ...parts, ...changes });
  await clock.advanceAwaiting(answersWithinMs);
  return answer;
}

test.each([
  ["fails", failing, /^the key store cannot be asked, .*\(TRUNKLINE_KEYS_AWAY_MS\)$/],
  ["hangs", hanging, /^the key store does not answer within 150 ms, .*\(TRUNKLINE_KEYS_AWAY_MS\)$/],
])(
  "whether a gateway can serve is said in time when the key store %s, and is so as long as known keys go on",
  async (_, ready, reason) => {
    const going = await told({ keys: { ready }, knownKeys: { usableWhileStoreAway: true } });
    expect(going).toMatchObject({ ready: true, checks: { keys: true }, reasons: [] });
    const not = await told({ keys: { ready } });
    expect(not).toMatchObject({ ready: false, checks: { keys: false }, reasons: [expect.stringMatching(reason)] });
  },
);

test("whether a gateway can serve is so without the grants for placements, which are named as a reason that stops nothing", async () => {
  const remark = "NATS does not let its credential publish to tl1.placed.*";
  expect(await told({ sharing: { remark } })).toMatchObject({ ready: true, reasons: [remark] });
  expect(await told({ sharing: { remark: undefined } })).toMatchObject({ ready: true, reasons: [] });
});

test("whether a gateway can serve has every reason that there is", async () => {
  turn(false);
  expect((await told({ keys: { ready: failing }, draining: () => true })).reasons).toHaveLength(3);
});
