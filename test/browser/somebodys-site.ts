import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeNatsSite } from "#shared/broker/nats-site.ts";
import { dayMs, systemClock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { openHistory } from "#shared/history/history.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { changeMachine, type MachineChange } from "#shared/records/change-machine.ts";
import { setKeep } from "#shared/records/change-keep.ts";
import { setRoute } from "../harness/set-records.ts";
import { issueKey, type NewKey } from "#shared/records/issue-key.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { WrittenRecord } from "#shared/requests/request-record.ts";
import { nothingToSettle } from "../../services/gateway/limits/limits.ts";
import { SqliteLimitsBook } from "../../services/gateway/limits/open-limits.ts";
import { Endpoint } from "../harness/endpoint.ts";
import type { FoundServers } from "../harness/found-servers.ts";
import { startNatsServer } from "../harness/nats-server.ts";
import { Operator } from "../harness/operator.ts";
import { pairOnStore } from "../harness/pair-on-store.ts";
import { SeededRandom } from "../harness/seeded-random.ts";
import { type GatewayProcess, startGateway } from "../harness/start-trunkline.ts";
import { addAlert, addPeople, idOf } from "./somebodys-people.ts";
import { requestsOf, sumsOf, usageOf } from "./somebodys-traffic.ts";
import { somebodysMachines, startMachine, type SomebodysMachine } from "./somebodys-machines.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** The clock of somebody who did something days ago. */
const before = (daysAgo: number) => ({ wall: () => Date.now() - daysAgo * dayMs });

/** The models that clients use all the time. */
const drainedModel = "Qwen/Qwen2.5-VL-32B-Instruct-AWQ";
const busyModels = ["qwen3-coder:30b", "openai/gpt-oss-120b", "llama3.3:70b"];

/** The keys of the site: how many days ago each was issued, by whom, and its terms. */
const keys: readonly (readonly [daysAgo: number, by: string, key: Partial<NewKey> & Pick<NewKey, "name">])[] = [
  [61, "mira", { name: "open-webui", limits: { concurrency: 16 } }],
  [48, "mira", { name: "mira's laptop" }],
  [40, "jonas", { name: "jonas: opencode", limits: { requestsPerMinute: 120 } }],
  [33, "mira", { name: "support bot", scopes: ["gpt-oss*", "openai/*"], limits: { tokensPerMinute: 200_000 } }],
  [21, "jonas", { name: "nightly evals", limits: { budget: { tokens: 120_000_000, per: "month" } } }],
  [12, "jonas", { name: "ci: code review", limits: { budget: { tokens: 40_000_000, per: "month" } } }],
  [9, "mira", { name: "lena (thesis)", scopes: ["llama3.*", "gemma3:27b"], ttlMs: 14 * dayMs }],
  [70, "mira", { name: "old notebook", ttlMs: 30 * dayMs }],
  [30, "mira", { name: "grafana", kind: "viewer" }],
  [
    15,
    "mira",
    { name: "research: notebooks", team: "research", limits: { spend: { millionths: 40_000_000, per: "month" } } },
  ],
  [14, "mira", { name: "helpdesk", team: "support" }],
  [6, "Anna Lindqvist", { name: "anna's laptop", team: "research", person: idOf("Anna Lindqvist") }],
  [3, "Jonas Weber", { name: "jonas: claude", team: "research", person: idOf("Jonas Weber") }],
];

/**
 * A site that looks like somebody's, in four stages: empty, as usual, full, and with its gateway away. Machines are presences over
 * NATS, and all that happened before stands in the store, written by the store's own code.
 */
export class SomebodysSite implements AsyncDisposable {
  readonly gateway: GatewayProcess;
  readonly adminKey: string;
  readonly #operator: Operator;
  readonly #natsUrl: string;
  /** The URL of a receiver that takes each call. */
  readonly #alertUrl: string;
  readonly #book: SqliteLimitsBook;
  readonly #random = new SeededRandom(53);
  readonly #parts: AsyncDisposableStack;
  readonly #traffic = new AbortController();
  readonly #holders = new Map<string, KeyRecord>();
  #settled = 0;
  #clientKeys: readonly string[] = [];

  private constructor(
    site: Pick<SomebodysSite, "gateway" | "adminKey"> & { readonly natsUrl: string; readonly alertUrl: string },
    { operator, parts }: { readonly operator: Operator; readonly parts: AsyncDisposableStack },
  ) {
    ({ gateway: this.gateway, adminKey: this.adminKey, natsUrl: this.#natsUrl, alertUrl: this.#alertUrl } = site);
    this.#operator = operator;
    this.#parts = parts;
    const { state } = operator.store;
    if (state.kind !== "sqlite") throw new Error("the site is on SQLite");
    this.#book = new SqliteLimitsBook(state.database, { clock: systemClock });
  }

  /** Starts an empty site. Outside of vitest, `found` is what `findServers` gave. */
  static async start(found?: FoundServers): Promise<SomebodysSite> {
    const parts = new AsyncDisposableStack();
    try {
      const stateDir = await mkdtemp(join(tmpdir(), "trunkline-somebody-"));
      parts.defer(() => rm(stateDir, { recursive: true, force: true }));
      const nats = parts.use(await startNatsServer({ ...(found && { found: found.nats }) }));
      const operator = parts.use(await Operator.on({ stateDir }));
      // A gateway pairs machines only where it could connect them to NATS.
      const { files } = makeNatsSite(systemClock);
      await writeFile(join(stateDir, "gateway.creds"), files["gateway.creds"]);
      const { token } = await operator.issue({ kind: "admin", name: "mira" });
      const receiver = parts.adopt(
        createServer((_, response) => void response.writeHead(204).end()),
        (each) => void each.close(),
      );
      await once(receiver.listen(0, "127.0.0.1"), "listening");
      const env = {
        TRUNKLINE_STATE_DIR: stateDir,
        TRUNKLINE_NATS_SIGNING_KEY: files["machines.seed"].trim(),
        TRUNKLINE_NATS_CREDS: join(stateDir, "gateway.creds"),
        TRUNKLINE_PUBLIC_URL: "https://models.example.org",
        TRUNKLINE_CURRENCY: "EUR",
        TRUNKLINE_ALERT_HOSTS: "127.0.0.1",
      };
      const gateway = parts.use(await startGateway({ natsUrl: nats.url, env }));
      const alertUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      const site = { gateway, adminKey: token.reveal(), natsUrl: nats.url, alertUrl };
      return new SomebodysSite(site, { operator, parts });
    } catch (error) {
      await parts.disposeAsync();
      throw error;
    }
  }

  /** Gives the empty site its keys, routes and machines, a month of usage and an hour of requests, and clients that ask. */
  async moveIn({ traffic = true } = {}): Promise<void> {
    const { routes, keeps, keys: store } = this.#operator.store;
    const by = { clock: before(20), actor: { by: "mira" } };
    await addPeople(this.#operator.store);
    await addAlert("oncall", this.#alertUrl, this.#operator.store);
    await addAlert("team-chat", "https://hooks.example.org/T0/B0/x", this.#operator.store);
    const issued = [];
    for (const [daysAgo, actor, key] of keys) issued.push(await this.#issue(key, daysAgo, actor));
    const ids = issued.flatMap(({ record }) => (record.kind === "model" ? [record.id] : []));
    for (const { record } of issued) this.#holders.set(record.id, record);
    await this.#addHistory(ids);
    for (const machine of somebodysMachines) await this.#pair(machine);
    await setRoute("gpt-4o", [{ model: "openai/gpt-oss-120b" }, { model: "gpt-oss:20b" }], {
      ...by,
      routes,
      keys: store,
    });
    await setRoute("fast", [{ model: "llama3.2", label: "office" }], { ...by, routes, keys: store });
    await setKeep("qwen3-coder:30b", { copies: 1, machines: undefined }, { ...by, keeps, keys: store });
    await this.#change("attic", { action: "machine_labelled", labels: ["office", "quiet"] });
    await this.#change("studio-4090", { action: "machine_labelled", labels: ["office"] });
    for (const id of ids.slice(0, 1)) {
      await changeKey(id, { action: "extended", ttlMs: 90 * dayMs }, { ...this.#keyParts(), actor: { by: "jonas" } });
    }
    this.#clientKeys = issued.slice(0, busyModels.length).map(({ token }) => token.reveal());
    await this.#endpointOf(0).untilListed(drainedModel, ...busyModels);
    // Two long answers run when it is drained.
    for (let place = 0; place < 2; place += 1) void this.#ask(drainedModel, { times: 400 });
    await sleep(500);
    await this.#change("rack-l40s", { action: "machine_cordoned", reason: "new power supply", drains: true });
    if (traffic) this.startTraffic();
  }

  /** Starts clients that ask for one answer after the other. */
  startTraffic(): void {
    for (const [client, model] of busyModels.entries()) void this.#ask(model, { client });
  }

  /** Adds what a large site has: 50 machines, 500 keys and 100,000 requests of a week. */
  async growLarge({ machines = 50, keys: wanted = 500, requests = 100_000 } = {}): Promise<void> {
    const ids: string[] = [];
    for (let place = keys.length; place < wanted; place += 1) {
      const { record } = await this.#issue({ name: `team-${place % 40} service ${place}` }, place % 80, "jonas");
      ids.push(record.id);
    }
    const [, ...known] = somebodysMachines;
    for (let place = somebodysMachines.length; place < machines; place += 1) {
      const as = known[place % (known.length - 1)];
      if (as !== undefined)
        await this.#pair({ ...as, name: `hall-${1 + (place % 3)}-node-${String(place).padStart(2, "0")}` });
    }
    const toMs = Date.now() - minuteMs;
    const period = { fromMs: toMs - 7 * dayMs, toMs, keys: ids, random: this.#random };
    await this.#write(requestsOf({ ...period, count: requests }));
  }

  /** Ends the gateway, as a crash does. */
  async endGateway(): Promise<void> {
    this.#traffic.abort();
    await this.gateway.kill();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#traffic.abort();
    await this.#parts.disposeAsync();
  }

  #endpointOf(client: number): Endpoint {
    return new Endpoint({ baseUrl: this.gateway.baseUrl, key: this.#clientKeys[client] ?? "" });
  }

  #holderOf(id: string) {
    const { team = null, person = null } = this.#holders.get(id) ?? {};
    return { team, person };
  }

  #keyParts() {
    const { keys: store, peppers } = this.#operator.store;
    return { keys: store, peppers, clock: systemClock };
  }

  #issue(key: Partial<NewKey> & Pick<NewKey, "name">, daysAgo: number, by: string): ReturnType<typeof issueKey> {
    const parts = { ...this.#keyParts(), clock: before(daysAgo), actor: { by } };
    return issueKey({ scopes: ["*"], ttlMs: 90 * dayMs, ...key }, parts);
  }

  async #addHistory(ids: readonly string[]): Promise<void> {
    const toMs = Date.now();
    const common = { keys: ids, random: this.#random };
    for (let day = 30; day > 0; day -= 1) {
      const isWeekend = [0, 6].includes(new Date(toMs - day * dayMs).getUTCDay());
      const count = this.#random.between(1_200, 2_000) / (isWeekend ? 5 : 1);
      const fromMs = toMs - day * dayMs;
      const records = requestsOf({ ...common, count: Math.round(count), fromMs, toMs: fromMs + dayMs - hourMs });
      await this.#write(records, { areKept: false });
    }
    await this.#write(requestsOf({ ...common, count: 360, fromMs: toMs - hourMs, toMs: toMs - minuteMs }));
  }

  /** Writes what became of requests: usage, sums for charts, and records unless these are gone by now. */
  async #write(records: readonly WrittenRecord[], { areKept = true } = {}): Promise<void> {
    const piece = 5_000;
    for (let from = 0; from < records.length; from += piece) {
      const some = records.slice(from, from + piece);
      await this.#settle({
        usage: usageOf(some).map((row) => ({ ...row, ...this.#holderOf(row.keyId) })),
        ...(areKept && { requests: some.map((each) => JSON.stringify(each)) }),
      });
    }
    const history = openHistory(this.#operator.store.state);
    for (const [minute, sums] of sumsOf(records)) {
      await history.add({ minute, sums, gateway: newToken(), sequence: 1 });
    }
  }

  async #settle(rows: Partial<Parameters<SqliteLimitsBook["settle"]>[0]>): Promise<void> {
    const numbers = { gateway: newToken(), sequence: (this.#settled += 1), acknowledged: this.#settled - 1 };
    await this.#book.settle({ ...nothingToSettle, ...numbers, renewed: [], growing: [], demands: [], ...rows });
  }

  async #pair(machine: SomebodysMachine): Promise<void> {
    const { machines } = this.#operator.store;
    const publicKey = await pairOnStore(machine.name, { machines, clock: before(this.#random.between(20, 60)) });
    if (machine.name !== "mira-macbook") {
      this.#parts.use(await startMachine(this.#natsUrl, machine));
      return;
    }
    // The owner of the notebook went home.
    const seen = { atMs: Date.now() - 2.4 * hourMs, runtime: machine.runtime, models: machine.models.length };
    await machines.noteSeen(new Map([[publicKey, seen]]));
  }

  async #change(name: string, change: MachineChange): Promise<void> {
    const { machines, keys: store } = this.#operator.store;
    await changeMachine(name, change, { machines, keys: store, clock: systemClock, actor: { by: "mira" } });
  }

  /** Asks for one answer after the other, as a client that people work with. */
  async #ask(model: string, { client = 0, times = 4 } = {}): Promise<void> {
    const { signal } = this.#traffic;
    while (!signal.aborted) {
      const body = {
        model,
        stream: true,
        messages: [{ role: "user", content: `How is a median found? repeat ${times}` }],
      };
      await this.#endpointOf(client)
        .post("/chat/completions", body, { signal, headers: { "user-agent": "opencode/1.0.85" } })
        .then((answer) => answer.text())
        .catch(() => undefined);
      await sleep(700);
    }
  }
}
