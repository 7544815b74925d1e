import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import type { FleetListing } from "#shared/fleet/shown-fleet.ts";
import type { RequestRecord } from "#shared/requests/request-record.ts";
import { RequestRecords } from "#shared/requests/request-records.ts";
import { EventTeller, type PageOwner } from "../../../../services/gateway/operations/tell-events.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

/** A page that follows, as far as the teller knows it. */
class FakePage {
  text = "";
  ended = false;
  destroyed = false;
  writableLength = 0;
  #onClose: () => void = () => undefined;
  writeHead = () => this;
  write = (text: string) => void (this.text += text);
  once = (_: string, run: () => void) => void (this.#onClose = run);
  end = () => this.#close("ended");
  destroy = () => this.#close("destroyed");

  get response(): ServerResponse {
    return this as unknown as ServerResponse;
  }

  get writableEnded(): boolean {
    return this.ended;
  }

  /** The data of all events of a name. */
  told(name: string): unknown[] {
    return [...this.text.matchAll(/event: (\w+)\ndata: (.*)\n/g)].flatMap(([, each, data]) =>
      each === name ? [JSON.parse(data ?? "")] : [],
    );
  }

  #close(how: "ended" | "destroyed"): void {
    this[how] = true;
    this.#onClose();
  }
}

const machine = {
  machine: "attic",
  status: "present",
  running: 2,
  queued: 1,
  slots: 4,
  takes_work: true,
  heard_ms_ago: 5,
};
const record = (id: string, at: number): RequestRecord =>
  ({
    id,
    at,
    keyId: "k",
    address: "a",
    path: "/v1/chat/completions",
    streamed: true,
    tried: [],
    status: 200,
    code: "ok",
    endedBy: "machine",
    totalMs: 100,
    promptTokens: 3,
    completionTokens: 60,
  }) as unknown as RequestRecord;

let clock: TurnableClock;
let fleet: FleetListing;
let looks: number;
let ended: RequestRecord[];
let trail: number;
let teller: EventTeller;
let keys = 0;
beforeEach(() => {
  clock = new TurnableClock();
  fleet = { object: "list", data: [machine], problem: null } as unknown as FleetListing;
  looks = 0;
  ended = [];
  trail = 0;
  const source = {
    page: async ({ before, after = "0" }: { before?: string | undefined; after?: string | undefined }) =>
      ended
        .map((each, place) => ({ cursor: String(place + 1), stored: each }))
        .filter(
          ({ cursor }) => Number(cursor) > Number(after) && (before === undefined || Number(cursor) < Number(before)),
        )
        .toReversed(),
    get: async () => undefined,
  };
  teller = new EventTeller({
    view: { machines: async () => ((looks += 1), fleet) },
    requests: new RequestRecords(source),
    keys: { log: async () => [{ at: trail }] as never },
    clock,
    log: { warn: () => undefined },
  });
});

async function follow(heard?: string, owner: PageOwner = { key: `key${(keys += 1)}` }): Promise<FakePage> {
  const page = new FakePage();
  await teller.follow(page.response, { owner, heard });
  return page;
}

/** Lets time pass, and what it began come to its end. */
async function lookAgain(ms: number): Promise<void> {
  await clock.advanceAwaiting(ms);
  for (let turn = 0; turn < 5; turn += 1) await setImmediate();
}

test("a page gets the fleet and the counts at once", async () => {
  const page = await follow();
  expect(page.told("fleet")).toEqual([fleet]);
  expect(page.told("now")).toEqual([
    expect.objectContaining({ running: 2, waiting: 1, slots: 4, ended_last_minute: 0 }),
  ]);
});

test("one look at the site serves all pages, and without a page there is none", async () => {
  const pages = [await follow(), await follow(), await follow()];
  const before = looks;
  await lookAgain(500);
  expect(looks).toBe(before + 1);
  for (const page of pages) page.end();
  expect(clock.timersWaiting).toBe(0);
});

test("a fleet is told when more than its ages has changed, and else after five seconds", async () => {
  const page = await follow();
  fleet = { ...fleet, data: [{ ...machine, heard_ms_ago: 900 }] } as unknown as FleetListing;
  await lookAgain(500);
  expect(page.told("fleet")).toHaveLength(1);
  fleet = { ...fleet, data: [{ ...machine, status: "offline" }] } as unknown as FleetListing;
  await lookAgain(500);
  expect(page.told("fleet")).toHaveLength(2);
  for (let turn = 0; turn < 10; turn += 1) await lookAgain(500);
  expect(page.told("fleet")).toHaveLength(3);
});

test("a request is told as it ends, and a page that comes back gets those that it missed", async () => {
  ended = [record("req_old", clock.wall())];
  const page = await follow();
  expect(page.told("request")).toEqual([]);
  ended.push(record("req_1", clock.wall()));
  await lookAgain(500);
  expect(page.told("request")).toEqual([expect.objectContaining({ id: "req_1" })]);
  expect(page.text).toContain("id: 2\nevent: request");
  page.end();
  ended.push(record("req_2", clock.wall()), record("req_3", clock.wall()));
  const again = await follow("2");
  expect(again.told("request").map((each) => (each as { id: string }).id)).toEqual(["req_2", "req_3"]);
});

test("a page that has heard of no request yet misses none that ends while it is away", async () => {
  const page = await follow();
  const [, place] = /^id: (\S+)$/m.exec(page.text) ?? [];
  page.end();
  ended.push(record("req_1", clock.wall()));
  const again = await follow(place);
  expect(again.told("request")).toEqual([expect.objectContaining({ id: "req_1" })]);
});

test("the counts are those of the last minute", async () => {
  ended = [record("req_old", clock.wall() - 120_000), { ...record("req_1", clock.wall() - 1_000), machine: "attic" }];
  const page = await follow();
  expect(page.told("now").at(-1)).toMatchObject({ ended_last_minute: 1, tokens_per_second: 1 });
  ended.push(record("req_2", clock.wall()));
  await lookAgain(500);
  await lookAgain(500);
  expect(page.told("now").at(-1)).toMatchObject({
    ended_last_minute: 2,
    tokens_per_second: 2,
    machine_tokens_per_second: { attic: 1 },
  });
});

test("a change of a record is told once, and none when the page was just opened", async () => {
  const page = await follow();
  await lookAgain(500);
  expect(page.told("change")).toEqual([]);
  trail = 1;
  await lookAgain(500);
  await lookAgain(500);
  expect(page.told("change")).toHaveLength(1);
});

test("a stream ends after fifteen seconds, so that an ended session sees no more", async () => {
  const page = await follow();
  await lookAgain(15_000);
  expect(page.ended).toBe(true);
});

test("a page that does not read is cut", async () => {
  const page = await follow();
  page.writableLength = 2_000_000;
  await lookAgain(500);
  expect(page.destroyed).toBe(true);
});

test("a gateway that stops ends its streams and takes no other", async () => {
  const page = await follow();
  teller.close();
  expect(page.ended).toBe(true);
  await expect(follow()).rejects.toMatchObject({ code: "shutting_down" });
  expect(clock.timersWaiting).toBe(0);
});

test("a session has at most 8 streams, a key 32, and others follow all the same", async () => {
  const session = { key: "k", session: "s" };
  // All at once: a place is taken before the store is asked.
  const opened = await Promise.allSettled(Array.from({ length: 9 }, () => follow(undefined, session)));
  const [page] = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const refused = opened.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
  expect(refused).toEqual([
    expect.objectContaining({
      code: "concurrency_limit_exceeded",
      message: "8 pages of this session (pagesPerSessionMax) follow this gateway already: close some.",
    }),
  ]);
  await Promise.all(Array.from({ length: 24 }, () => follow(undefined, { key: "k" })));
  await expect(follow(undefined, { key: "k" })).rejects.toMatchObject({
    message: "32 pages of this key (pagesPerKeyMax) follow this gateway already: close some.",
  });
  await follow(undefined, { key: "another" });
  page?.end();
  await follow(undefined, session);
});

test("a page that leaves while the site is looked at keeps no place and no timer", async () => {
  const page = new FakePage();
  const following = teller.follow(page.response, { owner: { key: "k" }, heard: undefined });
  page.destroy();
  await following;
  expect(clock.timersWaiting).toBe(0);
});
