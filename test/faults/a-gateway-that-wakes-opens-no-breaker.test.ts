import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { lane } from "./lane.ts";
import { ScriptedRequest } from "./scripted-request.ts";

const freezes = lane.isWhole ? 6 : 2;
/** More than a breaker needs to open. */
const streams = 8;
/** Longer than machines wait for a lease, so that they have given up the gateway's jobs and say so. */
const frozenMs = 3_600 * lane.scale;

test.skipIf(lentOnly("nats", "redis"))(
  "a gateway that wakes after it stood still blames no machine for streams that ended meanwhile, and finds it at once",
  { timeout: 120_000 },
  async () => {
    await using fleet = await startFleet({
      machines: { attic: { models: ["scripted"], env: { TRUNKLINE_SLOTS: "20" } } },
      env: { TRUNKLINE_TIME_SCALE: String(lane.scale) },
    });
    const { gateway } = fleet;
    const told: (string | undefined)[] = [];
    for (let freeze = 0; freeze < freezes; freeze += 1) {
      const ask = (place: number, tokens: number): ScriptedRequest => {
        const wish = { nonce: `still-${freeze}-${place}`, model: "scripted", script: { tokens, delayMs: 10 } };
        return new ScriptedRequest(fleet.endpoint, { ...wish, stream: true });
      };
      const asked = Array.from({ length: streams }, (_, place) => ask(place, 5_000));
      await until(() => asked.every(({ tokens }) => tokens > 5), { what: "every stream to flow" });
      await gateway.freeze();
      const next = ask(streams, 3);
      const sinceMs = performance.now();
      const isLongEnough = (): boolean => performance.now() - sinceMs > frozenMs;
      await until(isLongEnough, { what: "the gateway to stand still", timeoutMs: frozenMs * 2 });
      await gateway.thaw();
      await Promise.all(asked.map(({ over }) => over));
      told.push(await next.over);
    }
    const blames = (await gateway.logLines()).filter(({ msg }) => msg.includes("fails all the time"));
    expect(blames).toEqual([]);
    expect(told).toEqual(told.map(() => "answered"));
  },
);
