import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { systemClock, type Clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { placedPattern } from "#shared/protocol/subjects.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { PlacementSharing } from "../../services/gateway/routing/share-placements.ts";
import { foundServers, lentOnly } from "../harness/found-servers.ts";
import { startNatsOnFiles, type NatsOnFiles } from "../harness/nats-on-files.ts";
import { loadOn, peppersOf, promptOn, TestBook } from "../harness/placement-book.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";

/** The user `full` may all that gateways may, `deaf` may not subscribe to placements, `mute` may not publish them. */
const usersOf = (mute = ["tl1.machine.>"]): string => {
  const user = (name: string, publish: readonly string[], subscribe: readonly string[]) =>
    `{ user: ${name}, password: secret, permissions: ${JSON.stringify({ publish, subscribe })} }`;
  const users = [
    user("full", [placedPattern], [placedPattern, "x"]),
    user("deaf", [placedPattern, "x"], ["x"]),
    user("mute", [...mute, "x"], [placedPattern]),
  ];
  return `authorization { users: [${users.join(", ")}] }`;
};

describe.skipIf(lentOnly("nats") || foundServers().nats.by !== "binary")("placements over NATS", () => {
  let nats: NatsOnFiles;
  beforeEach(async () => void (nats = await startNatsOnFiles({ changeable: usersOf() })));
  afterEach(() => nats[Symbol.asyncDispose]());

  async function gateway(user: "full" | "deaf" | "mute" = "full", clock: Clock = systemClock) {
    const logged: string[] = [];
    const log = createLog({ level: "info", name: "test", write: (line) => void logged.push(JSON.parse(line).msg) });
    const url = nats.server.url.replace("//", `//${user}:secret@`);
    const broker = await connectNats({ url, name: "test", clock: systemClock, log });
    const book = new TestBook();
    const [id, peppers, timing] = [newToken(), peppersOf("a"), timingAt(1)];
    const sharing = new PlacementSharing({
      broker,
      gateway: id,
      book,
      peppers,
      site: { gateways: 2 },
      timing,
      clock,
      log,
    });
    onTestFinished(async () => {
      sharing.stop();
      await broker.close();
    });
    const place = (jobs: number): void => {
      book.own = [loadOn("attic", jobs, 1_000 * jobs)];
      book.placed.push(promptOn("attic", [jobs, jobs + 1]));
      sharing.changed();
    };
    await broker.flush();
    return { id, broker, book, sharing, logged, place };
  }
  type Gateway = Awaited<ReturnType<typeof gateway>>;

  const knows = (listener: Gateway, teller: Gateway, jobs: number): Promise<true> =>
    until(() => listener.book.ofOthers.get(teller.id)?.[0]?.jobs === jobs, { what: `${jobs} jobs to be known` });

  test("two gateways know each other's loads and prompts", async () => {
    const [one, other] = [await gateway(), await gateway()];
    one.place(2);
    other.place(3);
    await Promise.all([knows(other, one, 2), knows(one, other, 3)]);
    expect(other.book.news).toContainEqual({
      loads: [loadOn("attic", 2, 2_000)],
      prompts: [promptOn("attic", [2, 3])],
    });
    expect([one, other].map(({ sharing }) => sharing.remark)).toEqual([undefined, undefined]);
    one.sharing.stop();
    await until(() => other.book.ofOthers.size === 0, { what: "the gateway that stopped to be forgotten" });
  });

  test("a restart of NATS forgets nobody, and all is told again when it is back", async () => {
    const [one, other] = [await gateway(), await gateway()];
    one.place(2);
    await knows(other, one, 2);
    await nats.server.kill();
    await until(() => !one.broker.connected && !other.broker.connected, { what: "both connections to be lost" });
    one.place(5);
    await nats.server.restart();
    await knows(other, one, 5);
    expect(other.book.news).not.toContain("gone");
    other.place(1);
    await knows(one, other, 1);
  });

  test("a gateway that may not tell its placements runs on, says so once, and takes a grant that comes later", async () => {
    const clock = new TurnableClock();
    // Only the intervals are turned: the other gateway drops messages whose date is far from its own.
    const wall = () => Date.now();
    const turned = { now: () => clock.now(), wall, after: clock.after.bind(clock), every: clock.every.bind(clock) };
    const [mute, other] = [await gateway("mute", turned), await gateway()];
    const reason =
      "NATS does not let its credential publish to tl1.placed.*, so gateways choose machines without each other's jobs";
    await until(() => mute.sharing.remark === reason, { what: "the remark" });
    other.place(4);
    await knows(mute, other, 4);
    for (const jobs of [1, 2, 3]) {
      mute.place(jobs);
      clock.advance(60_000);
      await mute.broker.flush();
      await mute.broker.flush();
    }
    expect(mute.book.placed).toEqual([]);
    expect(mute.logged.filter((line) => line.includes("tl1.placed"))).toHaveLength(1);
    expect(mute.broker.trouble).toBeUndefined();

    await nats.reload(usersOf([placedPattern]));
    await until(
      () => {
        clock.advance(60_000);
        return mute.sharing.remark === undefined && mute.logged.includes("gateways know each other's placements again");
      },
      { what: "the grant to be tried again", intervalMs: 50 },
    );
    mute.place(6);
    clock.advance(1_000);
    await knows(other, mute, 6);
  });

  test("a gateway that may not hear placements runs on, says so once, and has no trouble with its broker", async () => {
    const [deaf, other] = [await gateway("deaf"), await gateway()];
    await until(() => deaf.sharing.remark?.includes("subscribe to tl1.placed.*"), { what: "the remark" });
    await deaf.broker.flush();
    expect(deaf.broker.trouble).toBeUndefined();
    other.place(1);
    await other.broker.flush();
    await deaf.broker.flush();
    expect(deaf.book.news).toEqual([]);
    expect(deaf.logged.filter((line) => line.includes("tl1.placed"))).toHaveLength(1);
  });
});
