import { noCaptures, noHistory, noRequests } from "../../../harness/no-requests.ts";
import { OwnIdempotencyRecords } from "../../../../services/gateway/jobs/idempotency-records.ts";
import { BadKeys } from "../../../../services/gateway/keys/bad-keys.ts";
import type { LightMyRequestResponse } from "fastify";
import { onTestFinished } from "vitest";
import type { z } from "zod";
import { issueKey, type IssuedKey, type KeyDependencies, type NewKey } from "#shared/records/issue-key.ts";
import type { KeyStore, RecordStore } from "#shared/records/key-store.ts";
import type { MachineStore } from "#shared/records/machine-record.ts";
import { type NamedStores, openNamed } from "#shared/records/named-records.ts";
import type { SessionStore } from "#shared/records/session-record.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { createLog } from "#shared/process/log.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import { adminApi } from "#shared/admin/admin-api.ts";
import type { AdminOperation } from "#shared/admin/operation.ts";
import { adminPrefix, adminRoutes, describeApi, errorBody } from "../../../../services/gateway/operations/admin-api.ts";
import type { AdminParts } from "../../../../services/gateway/operations/serve-operation.ts";
import { serveConsole } from "../../../../services/gateway/operations/serve-console.ts";
import { OpenId, type OpenIdSettings } from "../../../../services/gateway/operations/open-id.ts";
import { sessionRoutes } from "../../../../services/gateway/operations/sign-in.ts";
import { createServer } from "../../../../services/gateway/server.ts";
import { Fault } from "#shared/fault/fault.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

export const peppers = new Peppers(pepperText.parse("a pepper that is long enough to be one"));

/** A fleet of which nobody is there. */
const noFleet: AdminParts["fleet"] = {
  list: async () => ({ object: "list", data: [], machines: [] }),
  manage: async () => undefined,
};

const noView: AdminParts["view"] = {
  machines: async () => ({ object: "list", data: [], problem: null }),
  route: async ({ modelId }) => ({ object: "route", model: modelId, refusal: null, machines: [] }),
};

export interface Told {
  readonly status: number;
  readonly json: Record<string, unknown>;
  readonly headers: LightMyRequestResponse["headers"];
}

/** A site whose machines have no records. */
export const noMachines: MachineStore = {
  site: async () => ({ id: "0".repeat(22) }),
  noteSite: async () => undefined,
  list: async () => [],
  find: async () => undefined,
  findByKey: async () => undefined,
  findByJoin: async () => undefined,
  write: async () => "conflict",
  pair: async () => "conflict",
  rename: async () => "conflict",
  remove: async () => "conflict",
  noteSeen: async () => undefined,
  lastSeen: async () => new Map(),
};

/** Records of one kind in memory. */
class MemoryRecords<Kept extends { readonly name: string }> implements RecordStore<Kept> {
  readonly #records = new Map<string, Kept>();
  readonly list = async () => [...this.#records.values()];
  readonly find = async (name: string) => this.#records.get(name);
  readonly write = async (record: Kept) => {
    this.#records.set(record.name, record);
    return "written" as const;
  };
  readonly remove = async ({ name }: Kept) => (this.#records.delete(name) ? "written" : "conflict");
}

/** A site without routes, teams and the like. */
export const noRecords = (): NamedStores => openNamed(() => new MemoryRecords());

/** A console at which nobody is signed in. */
const noSessions: SessionStore = {
  write: async () => undefined,
  find: async () => undefined,
  remove: async () => false,
  list: async () => [],
  noteSignIn: async () => undefined,
  signIns: async () => [],
};
const ownAddresses = { baseUrl: "http://127.0.0.1:8080/v1", consoleUrl: "http://127.0.0.1:8081/console" };
const noneRunning: AdminParts["running"] = {
  list: async () => ({ data: [], left_out: 0, silent: [] }),
  cancel: async () => Promise.reject(new Fault("request_not_found", { message: "It is not running.", param: "id" })),
};
const noEvents: AdminParts["events"] = { follow: async (response) => void response.writeHead(200).end() };

/** The admin API on a store, as whoever has a key of it sees it. The clock is the API's; a store has its own. */
export class AdminOnStore {
  readonly keys: KeyStore;
  readonly named: NamedStores;
  readonly clock = new TurnableClock({ wallMs: Date.UTC(2026, 10, 27) });
  /** Rows that the API tells, and the days that it asked for. */
  readonly usage: UsageRow[] = [];
  readonly usageAsked: { from: string; to: string }[] = [];
  /** Every answer as it went out, with its headers, and every line that was logged. */
  readonly sent: string[] = [];
  readonly logged: string[] = [];
  /** Every route that is mounted, with its methods. */
  readonly mounted: { readonly method: string | readonly string[]; readonly url: string }[] = [];
  readonly server;
  readonly badKeys: BadKeys;

  constructor(
    keys: KeyStore,
    machines: MachineStore = noMachines,
    named = noRecords(),
    sessions: SessionStore = noSessions,
    openId?: OpenIdSettings,
  ) {
    this.keys = keys;
    this.named = named;
    this.badKeys = new BadKeys(this.clock);
    const log = createLog({ level: "debug", name: "gateway", write: (line) => void this.logged.push(line) });
    this.server = createServer({ log, bodyBytesMax: 1_048_576, bodyLimitName: "bodyBytesMax" });
    onTestFinished(() => this.server.close());
    this.server.addHook("onRoute", (route) => void this.mounted.push(route));
    const usage = {
      read: async (days: { from: string; to: string }) => {
        this.usageAsked.push(days);
        return { rows: this.usage, unread: 0 };
      },
    };
    const { clock, badKeys } = this;
    const addresses = () => ownAddresses;
    sessionRoutes(this.server, {
      written: keys,
      people: { find: async () => undefined },
      openId: openId && new OpenId(openId, { peppers, usedStates: new OwnIdempotencyRecords(clock), clock, log }),
      keys,
      sessions,
      peppers,
      badKeys,
      addresses,
      clock,
      log,
    });
    serveConsole(this.server);
    adminRoutes(this.server, {
      keys,
      machines,
      ...named,
      keeper: { plan: async () => ({ steps: [], told: new Map() }) },
      currency: "units",
      sessions,
      addresses,
      events: noEvents,
      running: noneRunning,
      isNameUsed: (machine) => machine === "unpaired",
      peppers,
      usage,
      endUsers: { sealedNames: async () => [] },
      alarms: { read: async () => ({ judgedAt: 0, alarms: [], gateways: {} }) },
      requests: noRequests,
      captures: noCaptures,
      history: noHistory,
      badKeys,
      alertSender: { send: async () => 204 },
      fleet: noFleet,
      view: noView,
      siteParts: {
        config: { natsUrl: undefined, natsCa: undefined, natsCert: undefined, shownSettings: [] },
        store: { keys, state: { kind: "redis", redis: undefined as never }, place: "nowhere" },
        gateway: "",
        loads: { jobsOf: () => 0 },
        sharing: undefined,
        check: async () => ({ ready: true, checks: { serving: true, broker: true, keys: true }, reasons: [] }),
        publicTls: undefined,
        tls: undefined,
      },
      clock,
      log,
    });
  }

  /** As an operator at a command line does it. */
  issue(terms: Partial<NewKey> = {}): Promise<IssuedKey> {
    return issueKey({ name: "alice", scopes: ["*"], ttlMs: 86_400_000, ...terms }, this.means());
  }

  means(): KeyDependencies {
    return { keys: this.keys, peppers, clock: this.clock, actor: { by: "the operator" } };
  }

  /**
   * Every answer must be just what the document says: of the operation's own schema, or an error, and not to be kept by
   * anybody on its way.
   */
  async ask(method: Method, path: string, options: { key?: string; body?: unknown } = {}): Promise<Told> {
    const { key, body } = options;
    const response = await this.server.inject({
      method,
      url: adminPrefix + path,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { payload: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    this.sent.push(JSON.stringify(response.headers) + response.body);
    const json: unknown = JSON.parse(response.body);
    const schema = response.statusCode < 400 ? answerOf(method, path) : errorBody;
    return { status: response.statusCode, json: { ...Object(schema.parse(json)) }, headers: response.headers };
  }
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export const operations: readonly AdminOperation[] = [...Object.values(adminApi), describeApi];

function answerOf(method: Method, path: string): z.ZodType {
  const [route] = path.split("?");
  const operation = operations.find(
    (each) => each.method === method && new RegExp(`^${each.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(route ?? ""),
  );
  if (operation === undefined) throw new Error(`${method} ${path} is no operation of the admin API`);
  return operation.answer;
}
