import { describe, expect, test } from "vitest";
import type { BrokerMessage } from "#shared/broker/broker.ts";
import { until } from "../harness/until.ts";
import { bytesOf, last, listen, pairOn, textOf, untilLast, type BrokerAdapter } from "./broker-pair.ts";

const verdict = (message: BrokerMessage): string => (message.noResponders ? message.subject : textOf(message));

/** What a gateway builds on to know in an instant that a machine is not there. */
export function nobodyThereContract(name: string, adapter: BrokerAdapter): void {
  async function asking() {
    const { speaker, listener, root } = await pairOn(adapter);
    const heard = await listen(speaker, `${root}.reply.>`, verdict);
    return {
      speaker,
      listener,
      root,
      heard,
      ask: (place: string) => speaker.publish(`${root}.machine`, bytesOf("job"), { reply: `${root}.reply.${place}` }),
      /** All verdicts on what was asked before. */
      verdicts: async (): Promise<string[]> => {
        speaker.publish(`${root}.reply.end`, bytesOf(last));
        await untilLast(heard);
        return heard.slice(0, heard.indexOf(last)).map((each) => each.slice(`${root}.reply.`.length));
      },
    };
  }

  describe(`nobody there, over ${name}`, () => {
    test("is told to a wildcard subscription of the publisher, once for each message", async () => {
      const { ask, verdicts } = await asking();
      ask("a");
      ask("b.c");
      ask("a");
      expect(await verdicts()).toEqual(["a", "b.c", "a"]);
    });

    test("is an empty message, and not every empty message means it", async () => {
      const { speaker, listener, root } = await pairOn(adapter);
      const heard = await listen(speaker, `${root}.reply.*`, ({ data, noResponders }) =>
        JSON.stringify([data.byteLength, noResponders]),
      );
      speaker.publish(`${root}.machine`, bytesOf("job"), { reply: `${root}.reply.a` });
      await speaker.flush();
      listener.publish(`${root}.reply.b`, new Uint8Array());
      listener.publish(`${root}.reply.c`, new Uint8Array(), { headers: { any: "header" } });
      await until(() => heard.length === 3, { what: "all three" });
      expect(heard).toEqual(["[0,true]", "[0,false]", "[0,false]"]);
    });

    test("is not said when anybody subscribes, were it only to watch", async () => {
      const { listener, root, ask, verdicts } = await asking();
      await listen(listener, `${root}.>`);
      ask("a");
      expect(await verdicts()).toEqual([]);
    });

    test("is said again when the last subscription has ended, and when its connection has closed", async () => {
      const { listener, speaker, root, ask, verdicts } = await asking();
      const subscription = listener.subscribe(`${root}.machine`, () => {});
      await listener.flush();
      ask("while-there");
      await speaker.flush();
      subscription.end();
      await listener.flush();
      ask("ended");
      await speaker.flush();
      await listen(listener, `${root}.machine`);
      ask("there-again");
      await speaker.flush();
      await listener.close();
      ask("closed");
      expect(await verdicts()).toEqual(["ended", "closed"]);
    });

    test("is said to the publisher only, and not at all without a reply subject", async () => {
      const { speaker, listener, root, ask, verdicts } = await asking();
      const overheard = await listen(listener, `${root}.reply.>`, verdict);
      ask("a");
      speaker.publish(`${root}.machine`, bytesOf("no reply wanted"));
      listener.publish(`${root}.machine`, bytesOf("job"), { reply: `${root}.elsewhere` });
      await listener.flush();
      expect(await verdicts()).toEqual(["a"]);
      await untilLast(overheard);
      expect(overheard).toEqual([last]);
    });
  });
}
