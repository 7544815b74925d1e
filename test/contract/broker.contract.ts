import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BrokerMessage } from "#shared/broker/broker.ts";
import { until } from "../harness/until.ts";
import { bytesOf, last, listen, pairOn, textOf, untilLast, type BrokerAdapter } from "./broker-pair.ts";

export function brokerContract(name: string, adapter: BrokerAdapter): void {
  const pair = () => pairOn(adapter);

  describe(`messages over ${name}`, () => {
    test("arrive in the order in which they were published, across subjects and subscriptions", async () => {
      const { speaker, listener, root } = await pair();
      const heard: string[] = [];
      for (const pattern of [`${root}.job`, `${root}.control`, `${root}.*.part`]) {
        listener.subscribe(pattern, (message) => void heard.push(textOf(message)));
      }
      await listener.flush();
      const subjects = ["job", "control", "one.part"];
      const said = Array.from({ length: 900 }, (_, place) => `${place}`);
      for (const [place, each] of said.entries()) {
        const headers = place % 2 === 0 ? { headers: { place: each } } : {};
        speaker.publish(`${root}.${subjects[place % 3]}`, bytesOf(each), headers);
        if (place % 100 === 0) await speaker.flush();
      }
      await until(() => heard.length === said.length, { what: "all messages" });
      expect(heard).toEqual(said);
    });

    test("reach whoever subscribed to their subject: * is one token, > is one or more", async () => {
      const { speaker, listener, root } = await pair();
      const subjectOf = ({ subject }: BrokerMessage): string => subject.slice(root.length);
      const patterns = ["a", "a.*", "*.b", "a.>", ">", "*", "a.*.c"];
      const heard = await Promise.all(patterns.map((pattern) => listen(listener, `${root}.${pattern}`, subjectOf)));
      const end = await listen(listener, `${root}-end`);
      for (const subject of ["", ".a", ".a.b", ".a.b.c", ".A", ".ab"]) speaker.publish(root + subject, bytesOf("x"));
      speaker.publish(`${root}-end`, bytesOf(last));
      await untilLast(end);
      expect(Object.fromEntries(patterns.map((pattern, place) => [pattern, heard[place]]))).toEqual({
        a: [".a"],
        "a.*": [".a.b"],
        "*.b": [".a.b"],
        "a.>": [".a.b", ".a.b.c"],
        ">": [".a", ".a.b", ".a.b.c", ".A", ".ab"],
        "*": [".a", ".A", ".ab"],
        "a.*.c": [".a.b.c"],
      });
    });

    test("come to every subscription, also of the connection that published them", async () => {
      const { speaker, listener, root } = await pair();
      const heard = await Promise.all([speaker, speaker, listener].map((each) => listen(each, `${root}.>`)));
      speaker.publish(`${root}.x`, bytesOf("hello"));
      await until(() => heard.every((each) => each.length > 0), { what: "three deliveries" });
      expect(heard).toEqual([["hello"], ["hello"], ["hello"]]);
    });

    test("carry any bytes unchanged", async () => {
      const { speaker, listener, root } = await pair();
      const heard = await listen(listener, root, ({ data }) => Buffer.from(data).toString("hex"));
      const special = ["", "\r\n", "PUB a 1\r\nx\r\n", "\0"].map((each) => new Uint8Array(bytesOf(each)));
      const payload = fc.oneof(fc.uint8Array({ maxLength: 3_000 }), fc.constantFrom(...special));
      await fc.assert(
        fc.asyncProperty(fc.array(payload, { minLength: 1, maxLength: 20 }), async (payloads) => {
          heard.length = 0;
          // Each is a view into a larger buffer, as frames and parts are.
          for (const each of payloads) speaker.publish(root, Buffer.concat([each, each]).subarray(each.byteLength));
          await until(() => heard.length >= payloads.length, { what: "all payloads", intervalMs: 1 });
          expect(heard).toEqual(payloads.map((each) => Buffer.from(each).toString("hex")));
        }),
        { numRuns: 40 },
      );
    });

    test("carry headers and a reply subject, and tell an empty header from none", async () => {
      const { speaker, listener, root } = await pair();
      const names = ["tl-job", "tl-key", "traceparent", "Tl-Job"];
      const heard = await listen(listener, root, (message) =>
        JSON.stringify([message.reply ?? null, ...names.map((each) => message.headers?.[each] ?? null)]),
      );
      const headers = { "tl-job": "a b: c%2F~", "tl-key": "" };
      speaker.publish(root, bytesOf("x"), { headers, reply: `${root}.reply` });
      speaker.publish(root, bytesOf("x"));
      await until(() => heard.length === 2, { what: "both messages" });
      expect(heard.map((each): unknown => JSON.parse(each))).toEqual([
        [`${root}.reply`, "a b: c%2F~", "", null, null],
        [null, null, null, null, null],
      ]);
    });

    test("messages of the largest size arrive, and a larger one throws", async () => {
      const { speaker, listener, root } = await pair();
      const heard = await listen(listener, root, ({ data }) => `${data.byteLength}`);
      const { payloadBytesMax } = speaker;
      const tooLarge = new Uint8Array(payloadBytesMax + 1);
      expect(() => speaker.publish(root, tooLarge)).toThrow(expect.objectContaining({ code: "internal_error" }));
      speaker.publish(root, tooLarge.subarray(1));
      await until(() => heard.length > 0, { what: "the largest message" });
      expect(heard).toEqual([`${payloadBytesMax}`]);
    });

    test("whose handler throws stop neither the others nor those that follow", async () => {
      const { speaker, listener, root } = await pair();
      listener.subscribe(root, () => {
        throw new Error("this handler always throws");
      });
      const heard = await listen(listener, root);
      for (const said of ["one", "two", last]) speaker.publish(root, bytesOf(said));
      await untilLast(heard);
      expect(heard).toEqual(["one", "two", last]);
    });

    test("that are on their way already do not come to a subscription that ends", async () => {
      const { speaker, listener, root } = await pair();
      const ended: string[] = [];
      const subscription = listener.subscribe(root, (message) => {
        ended.push(textOf(message));
        subscription.end();
      });
      const heard = await listen(listener, root);
      for (const said of ["one", "two", last]) speaker.publish(root, bytesOf(said));
      await untilLast(heard);
      expect(ended).toEqual(["one"]);
    });

    test("no longer come to a subscription that has ended", async () => {
      const { speaker, listener, root } = await pair();
      const ended: string[] = [];
      const subscription = listener.subscribe(root, (message) => void ended.push(textOf(message)));
      const heard = await listen(listener, root);
      speaker.publish(root, bytesOf("before"));
      await until(() => heard.length > 0 && ended.length > 0, { what: "the first message" });
      subscription.end();
      await listener.flush();
      speaker.publish(root, bytesOf(last));
      await untilLast(heard);
      expect(ended).toEqual(["before"]);
    });
  });
}
