import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { AuditEntry } from "#shared/keys/audit-entry.ts";
import {
  changeKey,
  type KeyChange,
  type KeyChanged,
  type NewTerms,
  replicatedIn,
  revokeKey,
  rotateKey,
} from "#shared/keys/change-key.ts";
import { issueKey } from "#shared/keys/issue-key.ts";
import { keyLimits, type KeyLimits, type KeyRecord, keyState, type KeyState } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { showKey, type ShownKey } from "#shared/keys/shown-key.ts";
import type { MachineStore } from "#shared/machines/machine-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { RouteStore } from "#shared/routes/route-record.ts";
import { usageKeptDays, type UsageRow, type UsageRows } from "#shared/usage/usage.ts";
import type { BadKeys } from "../keys/bad-keys.ts";
import type { FleetModels } from "../jobs/fleet-models.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { adminApi, adminPrefix, describeApi } from "./admin-api.ts";
import { openApiDocument } from "./admin-openapi.ts";
import type { ChangedKey, NamedTerms, ShownEntry, ShownUsage, UsageQuery } from "./admin-schemas.ts";
import type { FleetView } from "./fleet-view.ts";
import { mountFleet, mountMachineChanges, mountMachineRecords, mountModels } from "./machine-routes.ts";
import { mountModelRoutes } from "./model-routes.ts";
import { askerOf, proveAdmins } from "./operations-access.ts";
import { routeUrl, serveOperation } from "./serve-operation.ts";

export interface AdminParts {
  readonly keys: KeyStore;
  /** The key store that authenticates admin keys. Defaults to `keys`. */
  readonly newest?: Pick<KeyStore, "find">;
  readonly machines: MachineStore;
  readonly routes: RouteStore;
  /** Returns true while an agent that was not paired has this name. */
  readonly isNameUsed: (machine: string) => boolean;
  readonly peppers: Peppers;
  readonly usage: UsageRows;
  readonly badKeys: BadKeys;
  readonly fleet: Pick<FleetModels, "list" | "manage">;
  readonly view: Pick<FleetView, "machines" | "route">;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Log;
}

/**
 * Mounts everything under `/admin/v1`, for holders of admin keys: keys, models, machines and routes, as in the command line.
 */
export function adminRoutes(server: FastifyInstance, parts: AdminParts): void {
  void server.register(
    async (admin) => {
      admin.addHook("onRequest", async (_request, reply) => void reply.header("cache-control", "no-store"));
      const document = openApiDocument();
      serveOperation(admin, describeApi, async () => document);
      void admin.register(async (proven) => {
        proveAdmins(proven, { ...parts, keys: parts.newest ?? parts.keys });
        mountKeys(proven, parts);
        mountChanges(proven, parts);
        mountRecords(proven, parts);
        mountMachineRecords(proven, parts);
        mountMachineChanges(proven, parts);
        mountModelRoutes(proven, parts);
        mountModels(proven, parts);
        mountFleet(proven, parts);
      });
      for (const [path, methods] of methodsByPath()) refuseOtherMethods(admin, routeUrl(path), methods);
    },
    { prefix: adminPrefix },
  );
}

/** Mounts the routes that list, issue and show keys. */
function mountKeys(server: FastifyInstance, { keys, peppers, clock }: AdminParts): void {
  serveOperation(server, adminApi.listKeys, async ({ query }) => {
    const nowMs = clock.wall();
    const { page, hasMore } = pageOfKeys(await keys.list(), query, nowMs);
    return { object: "list" as const, data: page.map((record) => showKey(record, nowMs)), has_more: hasMore };
  });
  serveOperation(server, adminApi.issueKey, async ({ body, request }) => {
    const { kind, name, scopes, ttl, machines, elsewhere } = body;
    const bound = machines === null || machines === undefined ? {} : { machines };
    const { token, record } = await issueKey(
      { kind, name, scopes, ttlMs: ttl, ...bound, ...(elsewhere && { elsewhere }), limits: firstLimits(body) },
      { keys, peppers, clock, ...askerOf(request) },
    );
    return { ...showKey(record, clock.wall()), key: token.reveal() };
  });
  serveOperation(server, adminApi.showKey, async ({ params }) => {
    const found = await keys.find(params.id);
    if (found.kind !== "record") throw keyNotFound();
    return showKey(found.record, clock.wall());
  });
}

/** Mounts the routes that change an existing key. */
function mountChanges(server: FastifyInstance, { keys, peppers, clock }: AdminParts): void {
  const dependenciesOf = (request: FastifyRequest) => ({ keys, peppers, clock, ...askerOf(request) });
  const show = (record: KeyRecord | undefined): ShownKey => {
    if (record === undefined) throw keyNotFound();
    return showKey(record, clock.wall());
  };
  const change = async (id: KeyId, wish: KeyChange, request: FastifyRequest): Promise<ChangedKey> => {
    const changed = await changeKey(id, wish, dependenciesOf(request));
    return { ...show(changedRecord(changed)), ...replicatedIn(changed) };
  };

  serveOperation(server, adminApi.changeKey, async ({ params, body, request }) => {
    const { name, scopes, machines, elsewhere } = body;
    const terms = { name, scopes, machines, elsewhere, limits: namedLimits(body) };
    return change(params.id, { action: "changed", terms }, request);
  });
  serveOperation(server, adminApi.rotateKey, async ({ params, body, request }) => {
    const dependencies = dependenciesOf(request);
    const { id } = params;
    const kind = body.kind ?? (id === dependencies.admin.id ? dependencies.admin.kind : "model");
    const { changed, token } = await rotateKey({ id, graceMs: body.grace, kind }, dependencies);
    const shown = { ...show(changedRecord(changed)), ...replicatedIn(changed) };
    if (token === undefined) throw new Error("a key was rotated without a new secret");
    return { ...shown, key: token.reveal() };
  });
  serveOperation(server, adminApi.extendKey, ({ params, body, request }) =>
    change(params.id, { action: "extended", ttlMs: body.ttl }, request),
  );
  serveOperation(server, adminApi.disableKey, ({ params, request }) =>
    change(params.id, { action: "disabled" }, request),
  );
  serveOperation(server, adminApi.enableKey, ({ params, request }) =>
    change(params.id, { action: "enabled" }, request),
  );
  for (const operation of [adminApi.revokeKey, adminApi.deleteKey]) {
    serveOperation(server, operation, async ({ params: { id }, query, request }) => {
      const { changed, revoked, stay } = await revokeKey(
        { id, withIssued: query.with_issued },
        dependenciesOf(request),
      );
      changedRecord(changed);
      return {
        id,
        state: "revoked" as const,
        ...replicatedIn(changed),
        ...(revoked.length === 0 ? {} : { revoked_with_it: revoked.map((each) => each.id) }),
        ...(stay.length === 0 ? {} : { issued_and_stay: stay.map((each) => each.id) }),
      };
    });
  }
}

/** Mounts the routes of the audit log and of usage. */
function mountRecords(server: FastifyInstance, { keys, usage, clock }: AdminParts): void {
  serveOperation(server, adminApi.readLog, async ({ query }) => {
    const entries = await keys.log({ entriesMax: query.limit, key: query.key });
    return { object: "list" as const, data: entries.map(showEntry) };
  });
  serveOperation(server, adminApi.readUsage, async ({ query }) => {
    const rows = await usage.read(usageDays(query, clock.wall()));
    const asked = rows.filter(({ keyId }) => query.key === undefined || keyId === query.key);
    return { object: "list" as const, data: asked.map(showUsage) };
  });
}

function showEntry({ at, key, machine, route, detail, request, ...same }: AuditEntry): ShownEntry {
  return {
    ...same,
    key: key ?? null,
    machine: machine ?? null,
    route: route ?? null,
    at: new Date(at).toISOString(),
    detail: detail ?? null,
    request: request ?? null,
  };
}

function showUsage(row: UsageRow): ShownUsage {
  const { day, keyId, model, requests, failed, answered } = row;
  return {
    day,
    key: keyId,
    model,
    requests,
    failed,
    prompt_tokens: row.promptTokens,
    completion_tokens: row.completionTokens,
    answered,
    first_token_ms: row.firstTokenMs,
    duration_ms: row.durationMs,
  };
}

/** Returns the methods of each path. `GET` also allows `HEAD`. */
function methodsByPath(): ReadonlyMap<string, readonly string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of [describeApi, ...Object.values(adminApi)]) {
    methods.getOrInsertComputed(path, () => []).push(...(method === "GET" ? ["GET", "HEAD"] : [method]));
  }
  return methods;
}

interface PageQuery {
  readonly state?: KeyState | undefined;
  readonly limit: number;
  /** The last key of the page before, whatever its state is now. */
  readonly after?: KeyId | undefined;
}

/** Returns the next page of keys, in order of creation. Keys created at the same time are ordered by id. */
export function pageOfKeys(
  records: readonly KeyRecord[],
  { state, limit, after }: PageQuery,
  nowMs: number,
): { readonly page: readonly KeyRecord[]; readonly hasMore: boolean } {
  const ordered = records.toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
  const last = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && last === -1) {
    throw new Fault("invalid_value", {
      message: "Invalid value for 'after': this key no longer exists; start with the first page.",
      param: "after",
    });
  }
  const rest = ordered.slice(last + 1).filter((record) => state === undefined || keyState(record, nowMs) === state);
  return { page: rest.slice(0, limit), hasMore: rest.length > limit };
}

type Limits = Pick<NamedTerms, "rpm" | "tpm" | "concurrency" | "budget">;

/** Returns the limits that a request sets, null included. Leaves out the limits that it does not name. */
function namedLimits({ rpm, tpm, concurrency, budget }: Limits): NonNullable<NewTerms["limits"]> {
  return {
    ...(rpm === undefined ? {} : { requestsPerMinute: rpm }),
    ...(tpm === undefined ? {} : { tokensPerMinute: tpm }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(budget === undefined ? {} : { budget }),
  };
}

/** Limits for a new key; null means no limit. */
function firstLimits(terms: Limits): KeyLimits {
  const set = Object.entries(namedLimits(terms)).filter(([, limit]) => limit !== null);
  return keyLimits.parse(Object.fromEntries(set));
}

/**
 * Returns the record after a change, or undefined when the record was deleted. Throws a `Fault` for a change that
 * failed.
 */
function changedRecord(changed: KeyChanged): KeyRecord | undefined {
  switch (changed.outcome) {
    case "changed":
    case "unchanged":
      return changed.record;
    case "forgotten":
      return undefined;
    case "refused":
      throw new Fault("key_change_refused", { message: `The key ${changed.reason}.` });
    case "unknown":
      throw keyNotFound();
  }
}

function keyNotFound(): Fault {
  return new Fault("key_not_found", { message: "There is no key with this id.", param: "id" });
}

const dayMs = 86_400_000;
const defaultDays = 30;

/** Returns the first and the last day of the requested range, both included. The default is the last 30 days. */
export function usageDays(
  asked: Pick<UsageQuery, "from" | "to">,
  nowMs: number,
): { readonly from: string; readonly to: string } {
  const to = asked.to ?? dayOf(nowMs);
  const toMs = Date.parse(to);
  const from = asked.from ?? dayOf(toMs - (defaultDays - 1) * dayMs);
  const days = (toMs - Date.parse(from)) / dayMs + 1;
  if (days < 1) throw wrongFrom("it is after the last day");
  if (days > usageKeptDays)
    throw wrongFrom(`there are more than ${usageKeptDays} days (usageKeptDays) to the last one`);
  return { from, to };
}

function wrongFrom(reason: string): Fault {
  return new Fault("invalid_value", { message: `Invalid value for 'from': ${reason}.`, param: "from" });
}

function dayOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10);
}
