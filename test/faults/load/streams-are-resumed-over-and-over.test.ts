import { describe, expect, test } from "vitest";
import { lentOnly } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { percentile } from "../../harness/load/load-ledger.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { until } from "../../harness/until.ts";
import { sized, testTimeoutMs } from "./lane.ts";

const cutsWanted = sized({ fast: 60, whole: 1_000 });
const killsWanted = sized({ fast: 3, whole: 60 });
const clients = 12;
const tokens = 120;
/** Resumed within this time after the reconnect, for nearly all; a goal that is printed and not asserted. */
const goalMs = 200;

/** Counts what became of the connections of all clients. */
class Cuts {
  dropped = 0;
  killed = 0;
  /** True once the clients may end. */
  isOver = false;
  wrong: string[] = [];
  readonly resumedMs: number[] = [];

  get all(): number {
    return this.dropped + this.killed;
  }
}

/** Reads a stream until its end, or until it broke or was dropped, and returns whether it is complete. */
async function read(
  answer: Response,
  got: { data: string[]; id: string | undefined },
  dropAt: number,
): Promise<boolean> {
  let rest = "";
  let events = 0;
  for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const parts = (rest + text).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const id = /^id: (.*)$/m.exec(part)?.[1];
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (data === undefined) continue;
      if (data === "[DONE]") return true;
      got.data.push(data);
      got.id = id ?? got.id;
      events += 1;
      if (events >= dropAt) return false;
    }
  }
  return false;
}

describe.skipIf(lentOnly("nats", "redis"))("clients of three gateways that lose their connections", () => {
  test(
    `over and over, ${cutsWanted} times in all and by killed gateways too, get every character once`,
    async () => {
      await using fleet = await BalancedFleet.start({ gateways: 3, machines: { attic: ["scripted"] } });
      const random = new SeededRandom(1);
      const cuts = new Cuts();
      const ask = async (nonce: string, lastEventId: string | undefined): Promise<Response> => {
        const gateway = fleet.gateways[random.between(0, 2)];
        return fetch(`${gateway?.baseUrl}/chat/completions`, {
          method: "POST",
          headers: {
            authorization: `Bearer ${fleet.key}`,
            "content-type": "application/json",
            "x-trunkline-resumable": "1",
            ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
          },
          body: JSON.stringify({
            model: "scripted",
            stream: true,
            messages: [{ role: "user", content: `/script tokens=${tokens} delay_ms=15 nonce=${nonce}` }],
          }),
        });
      };
      const client = async (name: number): Promise<void> => {
        for (let number = 0; !cuts.isOver; number += 1) {
          const nonce = `c${name}x${number}`;
          const got = { data: [] as string[], id: undefined as string | undefined };
          for (;;) {
            const startedAtMs = performance.now();
            const answer = await ask(nonce, got.id).catch(() => undefined);
            // A gateway that is being started again does not listen yet.
            if (answer === undefined) continue;
            if (answer.status !== 200) {
              cuts.wrong.push(`${nonce}: ${answer.status} ${await answer.text().catch(() => "")}`);
              break;
            }
            if (got.id !== undefined) cuts.resumedMs.push(performance.now() - startedAtMs);
            const dropAt = random.between(1, 150);
            const before = got.data.length;
            const done = await read(answer, got, dropAt).catch(() => false);
            if (done) break;
            if (got.data.length - before >= dropAt) cuts.dropped += 1;
            else cuts.killed += 1;
          }
          const text = got.data.map((data) => JSON.parse(data).choices?.[0]?.delta?.content ?? "").join("");
          const wanted = Array.from({ length: tokens }, (_, token) => `${nonce}-${token} `).join("");
          if (text !== wanted) cuts.wrong.push(`${nonce}: ${text}`);
        }
      };
      const running = Array.from({ length: clients }, (_, name) => client(name));
      for (let kill = 0; kill < killsWanted; kill += 1) {
        const before = cuts.all;
        await until(() => cuts.all > before + 3, { what: "some cuts", timeoutMs: testTimeoutMs / 2 });
        const index = kill % fleet.gateways.length;
        await fleet.gateways[index]?.kill();
        await fleet.startGateway(index);
      }
      await until(() => cuts.all >= cutsWanted, { what: "all cuts", timeoutMs: testTimeoutMs / 2 });
      cuts.isOver = true;
      await Promise.all(running);
      const p95Ms = Math.round(percentile(cuts.resumedMs, 95) ?? 0);
      console.log(
        `${cuts.dropped} connections dropped and ${cuts.killed} lost with their gateway; resumed in ${p95Ms} ms at p95 (goal ${goalMs} ms)`,
      );
      expect(cuts.wrong).toEqual([]);
      expect(cuts.killed).toBeGreaterThan(0);
    },
    testTimeoutMs,
  );
});
