import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { until } from "../../harness/until.ts";
import { agentOnBroker } from "./agent-on-a-broker.ts";
import { PartCollector } from "../../../services/agent/jobs/collect-parts.ts";
import * as fc from "fast-check";

const says = "x".repeat(700_000);
const body = Buffer.from(JSON.stringify({ messages: [{ role: "user", content: says }] }));
const head = { body, sha256: createHash("sha256").update(body).digest("hex") };
const parts = Array.from({ length: Math.ceil(body.byteLength / limits.partBytes) }, (_, place) => {
  const offset = place * limits.partBytes;
  return { offset, bytes: body.subarray(offset, offset + limits.partBytes) };
});

/** A job whose body is to follow, and a way to send parts of it by their places. */
async function receiving() {
  const agent = await agentOnBroker({ slots: 1, queueMax: 1 });
  const id = await agent.gateway.send(head);
  const send = async (...places: number[]): Promise<void> => {
    for (const { offset, bytes } of places.flatMap((place) => parts[place] ?? [])) {
      await agent.gateway.part(id, offset, bytes);
    }
  };
  const acks = (): unknown[] =>
    agent.gateway.frames(id).flatMap(({ kind, payload }) => (kind === "part-ack" ? [payload] : []));
  const contents = (): unknown[] => agent.runtime.chats.map(({ run }) => run.body.messages[0]?.content);
  /** A large body is read in a thread, which takes its time. */
  const run = (jobs: number): Promise<unknown> =>
    until(() => agent.runtime.chats.length === jobs, { what: "the runtime to be asked" });
  return { ...agent, id, send, acks, contents, run };
}

test("a body in parts is asked for, acknowledged by what has arrived in order, and given to the runtime when it is whole", async () => {
  const { gateway, id, send, acks, contents, run } = await receiving();
  expect(gateway.frames(id)).toMatchObject([{ kind: "accept", payload: { state: "receiving" } }]);
  await send(0, 1);
  expect(contents()).toEqual([]);
  await send(2);
  expect(acks()).toEqual([limits.partBytes, 2 * limits.partBytes, body.byteLength].map((received) => ({ received })));
  await run(1);
  expect(contents()).toEqual([says]);
});

test("a body in parts is acknowledged again when a part comes again after it was whole: the last word may have been lost", async () => {
  const { send, acks } = await receiving();
  await send(0, 1, 2);
  const before = acks().length;
  await send(2);
  expect(acks().slice(before)).toEqual([{ received: body.byteLength }]);
});

test("a body in parts that is not what its sender meant is never run, and its place is free again", async () => {
  const { gateway, runtime, id, send } = await receiving();
  await send(0, 1);
  const { offset, bytes } = parts[2] ?? { offset: 0, bytes: body };
  await gateway.part(id, offset, Buffer.from(bytes).fill("y"));
  expect(gateway.lastOf(id)).toMatchObject({ kind: "fault", payload: { code: "upstream_error" } });
  expect(runtime.chats).toHaveLength(0);
  expect(gateway.kinds(await gateway.send(head))).toEqual(["accept"]);
});

test("a body in parts holds its place in the queue, and those behind it that are ready go first", async () => {
  const { gateway, runtime, send, contents, run } = await receiving();
  const small = await gateway.send();
  expect([gateway.kinds(small), runtime.chats.length]).toEqual([["accept"], 1]);
  await send(0, 1, 2);
  expect(contents()).toEqual(["Hello"]);
  await runtime.begun().finish().settled();
  await run(2);
  expect(contents()).toEqual(["Hello", says]);
});

const collectorFor = (sent: Uint8Array): PartCollector =>
  new PartCollector({ bodyBytes: sent.byteLength, sha256: createHash("sha256").update(sent).digest("hex") });

const someBody = fc.uint8Array({ minLength: 1, maxLength: 200 });
/** Parts as a network may bring them: any piece of the body, any number of times, in any order. */
const arrivals = fc.array(fc.tuple(fc.nat(199), fc.integer({ min: 1, max: 80 })), { maxLength: 40 });

test("a body in parts survives parts that are lost, come twice or in another order: what is acknowledged is there", () => {
  fc.assert(
    fc.property(someBody, arrivals, (sent, arriving) => {
      const collector = collectorFor(sent);
      let expected = 0;
      for (const [offset, bytes] of arriving) {
        if (expected === sent.byteLength) break;
        const part = sent.subarray(offset, offset + bytes);
        if (offset === expected) expected += part.byteLength;
        const collected = collector.add(offset, part);
        expect(collector.received).toBe(expected);
        expect(collected).toBe(expected === sent.byteLength ? "whole" : "incomplete");
      }
      // The sender goes on from where it was told.
      if (expected === sent.byteLength) return;
      const collected = collector.add(collector.received, sent.subarray(collector.received));
      expect(collected === "whole" && Buffer.compare(collector.body, sent)).toBe(0);
    }),
    { numRuns: 500 },
  );
});

test("a body in parts is corrupt when any one byte is another", () => {
  fc.assert(
    fc.property(someBody, fc.nat(199), fc.integer({ min: 1, max: 255 }), (sent, at, difference) => {
      const changed = Uint8Array.from(sent);
      const place = at % sent.byteLength;
      changed[place] = (changed[place] ?? 0) ^ difference;
      expect(collectorFor(sent).add(0, changed)).toBe("corrupt");
    }),
  );
});

test("a body in parts is corrupt when it grows beyond what its head said, and never larger than that", () => {
  const collector = collectorFor(Buffer.from("abc"));
  expect(collector.add(0, Buffer.from("abcd"))).toBe("corrupt");
  expect(collector.received).toBe(0);
});
