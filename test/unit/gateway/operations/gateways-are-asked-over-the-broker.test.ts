import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { createLog } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { GatewayAsker } from "../../../../services/gateway/operations/ask-gateways.ts";
import { peppersOf } from "../../../harness/placement-book.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

/** A site in this process, whose store also knows gateways of these hosts, which do not answer; all that crosses its broker is kept. */
function site(...others: readonly string[]) {
  const clock = new TurnableClock();
  const log = createLog({ level: "warn", name: "test", write: () => undefined });
  const network = new MemoryBroker({ clock, log });
  const crossed: string[] = [];
  network.connect().subscribe("tl1.placed.*", ({ data }) => void crossed.push(Buffer.from(data).toString("latin1")));
  const noted = others.map((name) => ({ name, version: "0.3.0", token: newToken() }));
  const keys = { gateways: async () => noted };
  function gateway(says: string, pepper = "a"): GatewayAsker {
    const answer = async (about: unknown) => ({ says, about });
    const broker = network.connect();
    const token = newToken();
    noted.push({ name: says, version: "0.3.0", token });
    const asker = new GatewayAsker({
      broker,
      gateway: token,
      peppers: peppersOf(pepper),
      keys,
      clock,
      answer,
    });
    onTestFinished(() => asker.close());
    return asker;
  }
  /** Asks, and lets the time pass for which answers are waited for. */
  async function ask(asker: GatewayAsker) {
    const asked = asker.ask("a question", { withinMs: 300 });
    for (let turn = 0; turn < 8; turn += 1) await nextTurn();
    await clock.advanceAwaiting(300);
    return asked;
  }
  return { gateway, ask, crossed, clock };
}

test("a gateway that is alone in its site asks nobody", async () => {
  const { gateway, ask, crossed } = site();
  expect(await ask(gateway("one"))).toEqual({ answers: [], silent: [] });
  expect(crossed).toEqual([]);
});

test("a gateway gets the sealed answers of the others at once, and the name of one that is too old to answer when the time is over", async () => {
  const { gateway, ask, crossed } = site("old");
  const [one] = [gateway("one"), gateway("other")];
  expect(await ask(one)).toEqual({ answers: [{ says: "other", about: "a question" }], silent: ["old"] });
  expect(crossed.join("")).not.toMatch(/question|other/);
});

test("a process with another pepper gets no answer of a gateway, and gives it none", async () => {
  const { gateway, ask } = site();
  const [one, stranger] = [gateway("one"), gateway("stranger", "b")];
  expect((await ask(one)).answers).toEqual([]);
  expect((await ask(stranger)).answers).toEqual([]);
});

test("a gateway whose answer is too large for a message is told of as silent", async () => {
  const { gateway, ask } = site();
  const [one] = [gateway("one"), gateway("x".repeat(2_000_000))];
  expect((await ask(one)).silent).toHaveLength(1);
});
