import type { FastifyInstance, FastifyRequest } from "fastify";
import type { AuditEntry } from "#shared/keys/audit-entry.ts";
import { changeKey, replicatedIn } from "#shared/keys/change-key.ts";
import { issueKey } from "#shared/keys/issue-key.ts";
import type { KeyChange } from "#shared/keys/key-change.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/peppers.ts";
import { revokeKey } from "#shared/keys/revoke-key.ts";
import { rotateKey } from "#shared/keys/rotate-key.ts";
import { showKey, type ShownKey } from "#shared/keys/shown-key.ts";
import type { MachineStore } from "#shared/machines/machine-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { UsageRow, UsageRows } from "#shared/usage/usage-row.ts";
import type { BadKeys } from "../access/bad-keys.ts";
import type { FleetModels } from "../dispatch/fleet-models.ts";
import type { FleetView } from "./fleet-view.ts";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import { adminApi, adminPrefix, describeApi } from "./admin-api.ts";
import type { ChangedKey, ShownEntry, ShownUsage } from "./admin-schemas.ts";
import { changedRecord, keyNotFound } from "./changed-record.ts";
import { mountFleet } from "./fleet-routes.ts";
import { mountMachineRecords } from "./machine-record-routes.ts";
import { mountModels } from "./model-routes.ts";
import { firstLimits, namedLimits } from "./named-limits.ts";
import { openApiDocument } from "./openapi.ts";
import { pageOfKeys } from "./page-of-keys.ts";
import { askerOf, proveAdmins } from "./prove-admins.ts";
import { routeUrl, serveOperation } from "./serve-operation.ts";
import { usageDays } from "./usage-days.ts";

export interface AdminParts {
  readonly keys: KeyStore;
  /** The key store that authenticates admin keys. Defaults to `keys`. */
  readonly newest?: Pick<KeyStore, "find">;
  readonly machines: MachineStore;
  readonly peppers: Peppers;
  readonly usage: UsageRows;
  readonly badKeys: BadKeys;
  readonly fleet: Pick<FleetModels, "list" | "manage">;
  readonly view: Pick<FleetView, "machines" | "route">;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Log;
}

/**
 * Mounts everything under `/admin/v1`, for holders of admin keys: keys, models and machines, as in the command line.
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
    const { kind, name, scopes, ttl, machines } = body;
    const bound = machines === null || machines === undefined ? {} : { machines };
    const { token, record } = await issueKey(
      { kind, name, scopes, ttlMs: ttl, ...bound, limits: firstLimits(body) },
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
  const meansOf = (request: FastifyRequest) => ({ keys, peppers, clock, ...askerOf(request) });
  const show = (record: KeyRecord | undefined): ShownKey => {
    if (record === undefined) throw keyNotFound();
    return showKey(record, clock.wall());
  };
  const change = async (id: KeyId, wish: KeyChange, request: FastifyRequest): Promise<ChangedKey> => {
    const changed = await changeKey(id, wish, meansOf(request));
    return { ...show(changedRecord(changed)), ...replicatedIn(changed) };
  };

  serveOperation(server, adminApi.changeKey, async ({ params, body, request }) => {
    const { name, scopes, machines } = body;
    const terms = { name, scopes, machines, limits: namedLimits(body) };
    return change(params.id, { action: "changed", terms }, request);
  });
  serveOperation(server, adminApi.rotateKey, async ({ params, body, request }) => {
    const means = meansOf(request);
    const { id } = params;
    const kind = body.kind ?? (id === means.admin.id ? means.admin.kind : "model");
    const { changed, token } = await rotateKey({ id, graceMs: body.grace, kind }, means);
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
      const { changed, revoked, stay } = await revokeKey({ id, withIssued: query.with_issued }, meansOf(request));
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

function showEntry({ at, key, machine, detail, request, ...same }: AuditEntry): ShownEntry {
  return {
    ...same,
    key: key ?? null,
    machine: machine ?? null,
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
