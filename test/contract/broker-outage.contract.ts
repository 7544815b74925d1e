import { describe, expect, test } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import { until } from "../harness/until.ts";
import { bytesOf, last, listen, pairOn, textOf, untilLast, type BrokerAdapter } from "./broker-pair.ts";

export interface CuttableAdapter extends BrokerAdapter {
  /** Breaks this connection, and perhaps others too. */
  cut(connection: Broker): Promise<void>;
  /** Makes it possible again for all connections to come back, which they do by themselves. */
  restore(): Promise<void>;
}

export function brokerOutageContract(name: string, adapter: CuttableAdapter): void {
  async function cut(connection: Broker): Promise<void> {
    await adapter.cut(connection);
    await until(() => !connection.connected, { what: "the connection to be down" });
  }
  async function restore(...connections: Broker[]): Promise<void> {
    await adapter.restore();
    await until(() => connections.every((each) => each.connected), { what: "all connections to be back" });
    for (const connection of connections) await connection.flush();
  }

  describe(`an outage of ${name}`, () => {
    test("is told by publish, and nothing that was published in it comes later", async () => {
      const { speaker, listener, root } = await pairOn(adapter);
      const heard = await listen(listener, root);
      await cut(speaker);
      expect(speaker.publish(root, bytesOf("lost"))).toBe("disconnected");
      await expect(speaker.flush()).rejects.toThrow();
      await restore(speaker, listener);
      expect(speaker.publish(root, bytesOf(last))).toBe("sent");
      await untilLast(heard);
      expect(heard).toEqual([last]);
    });

    test("has begun when it is told: what a listener publishes at that moment is refused", async () => {
      const { speaker, listener, root } = await pairOn(adapter);
      const heard = await listen(listener, root);
      let sentSince = 0;
      speaker.onChange((connected) => {
        if (!connected) sentSince += speaker.publish(root, bytesOf("in the outage")) === "sent" ? 1 : 0;
      });
      await cut(speaker);
      await restore(speaker, listener);
      speaker.publish(root, bytesOf(last));
      await untilLast(heard);
      expect({ heard, sentSince }).toEqual({ heard: [last], sentSince: 0 });
    });

    test("is told to listeners when it begins and when it ends, each after it is so", async () => {
      const { speaker } = await pairOn(adapter);
      const told: [boolean, boolean][] = [];
      speaker.onChange((connected) => void told.push([connected, speaker.connected]));
      const ended = speaker.onChange(() => void told.push([false, true]));
      ended.end();
      await cut(speaker);
      await restore(speaker);
      expect(told).toEqual([
        [false, false],
        [true, true],
      ]);
    });

    test("makes the connection count as up from its end, and from the start before", async () => {
      const beforeMs = performance.now();
      const { speaker } = await pairOn(adapter);
      expect(speaker.connectedSinceMs).toBeGreaterThanOrEqual(beforeMs);
      await cut(speaker);
      const cutMs = performance.now();
      let toldSinceMs = 0;
      speaker.onChange(() => (toldSinceMs = speaker.connectedSinceMs));
      await restore(speaker);
      expect(speaker.connectedSinceMs).toBeGreaterThanOrEqual(cutMs);
      expect(speaker.connectedSinceMs).toBeLessThanOrEqual(performance.now());
      expect(toldSinceMs).toBe(speaker.connectedSinceMs);
    });

    test("is outlived by subscriptions, also by one made in it, and not by one that ended in it", async () => {
      const { speaker, listener, root } = await pairOn(adapter);
      const heard = await listen(listener, `${root}.*`);
      const ended: string[] = [];
      const toEnd = listener.subscribe(`${root}.*`, (message) => void ended.push(textOf(message)));
      await listener.flush();
      await cut(listener);
      toEnd.end();
      const made: string[] = [];
      listener.subscribe(`${root}.*`, (message) => void made.push(textOf(message)));
      await restore(speaker, listener);
      speaker.publish(`${root}.x`, bytesOf(last));
      await untilLast(heard);
      await untilLast(made);
      expect({ heard, made, ended }).toEqual({ heard: [last], made: [last], ended: [] });
    });

    test("makes a subscriber nobody: who is cut off is not there", async () => {
      const { speaker, listener, root } = await pairOn(adapter);
      await listen(listener, `${root}.machine`);
      const verdicts = await listen(speaker, `${root}.reply.>`, (message) => `${message.noResponders}`);
      await cut(listener);
      await listener.close();
      await restore(speaker);
      speaker.publish(`${root}.machine`, bytesOf("job"), { reply: `${root}.reply.1` });
      await until(() => verdicts.length > 0, { what: "a verdict" });
      expect(verdicts).toEqual(["true"]);
    });
  });

  describe(`the close of a connection to ${name}`, () => {
    test("lets what was published before arrive, and nothing after", async () => {
      const { speaker, listener, root } = await pairOn(adapter);
      const heard = await listen(listener, root);
      const own = await listen(speaker, root);
      speaker.publish(root, bytesOf("before"));
      await speaker.close();
      expect(speaker.connected).toBe(false);
      expect(speaker.publish(root, bytesOf("after"))).toBe("disconnected");
      own.length = 0;
      listener.publish(root, bytesOf(last));
      await untilLast(heard);
      expect({ heard, own }).toEqual({ heard: ["before", last], own: [] });
    });

    test("is a change that listeners are told", async () => {
      const { speaker } = await pairOn(adapter);
      const told: boolean[] = [];
      speaker.onChange((connected) => void told.push(connected));
      await speaker.close();
      expect(told).toEqual([false]);
    });

    test("is for good, also in an outage that ends", async () => {
      const { speaker, listener } = await pairOn(adapter);
      await cut(speaker);
      await speaker.close();
      await restore(listener);
      expect(speaker.connected).toBe(false);
      await speaker.close();
    });
  });
}
