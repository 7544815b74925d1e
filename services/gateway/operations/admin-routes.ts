import type { FastifyInstance, FastifyRequest } from "fastify";
import type { AuditEntry } from "#shared/keys/audit-entry.ts";
import { changeKey } from "#shared/keys/change-key.ts";
import { issueKey, type KeyMeans } from "#shared/keys/issue-key.ts";
import type { KeyChange } from "#shared/keys/key-change.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/peppers.ts";
import { rotateKey } from "#shared/keys/rotate-key.ts";
import { showKey, type ShownKey } from "#shared/keys/shown-key.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { UsageRow, UsageRows } from "#shared/usage/usage-row.ts";
import type { BadKeys } from "../access/bad-keys.ts";
import type { FleetModels } from "../fleet/fleet-models.ts";
import type { FleetView } from "../fleet/fleet-view.ts";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import { adminApi, adminPrefix, describeApi } from "./admin-api.ts";
import type { ShownEntry, ShownUsage } from "./admin-schemas.ts";
import { changedRecord, keyNotFound } from "./changed-record.ts";
import { mountFleet } from "./fleet-routes.ts";
import { mountModels } from "./model-routes.ts";
import { firstLimits, namedLimits } from "./named-limits.ts";
import { openApiDocument } from "./openapi.ts";
import { pageOfKeys } from "./page-of-keys.ts";
import { actorOf, proveAdmins } from "./prove-admins.ts";
import { routeUrl, serveOperation } from "./serve-operation.ts";
import { usageDays } from "./usage-days.ts";

export interface AdminParts {
  readonly keys: KeyStore;
  readonly peppers: Peppers;
  readonly usage: UsageRows;
  readonly badKeys: BadKeys;
  readonly fleet: Pick<FleetModels, "list" | "manage">;
  readonly view: Pick<FleetView, "machines" | "route">;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Log;
}

/** Everything under `/admin/v1`: what the command line does with keys, models and machines, for holders of admin keys. */
export function adminRoutes(server: FastifyInstance, parts: AdminParts): void {
  void server.register(
    async (admin) => {
      admin.addHook("onRequest", async (_request, reply) => void reply.header("cache-control", "no-store"));
      const document = openApiDocument();
      serveOperation(admin, describeApi, async () => document);
      void admin.register(async (proven) => {
        proveAdmins(proven, parts);
        mountKeys(proven, parts);
        mountChanges(proven, parts);
        mountRecords(proven, parts);
        mountModels(proven, parts);
        mountFleet(proven, parts);
      });
      for (const [path, methods] of methodsByPath()) refuseOtherMethods(admin, routeUrl(path), methods);
    },
    { prefix: adminPrefix },
  );
}

/** Keys one by one and all of them. */
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
      { keys, peppers, clock, actor: actorOf(request) },
    );
    return { ...showKey(record, clock.wall()), key: token.reveal() };
  });
  serveOperation(server, adminApi.showKey, async ({ params }) => {
    const found = await keys.find(params.id);
    if (found.kind !== "record") throw keyNotFound();
    return showKey(found.record, clock.wall());
  });
}

/** What may be done to a key that there is. */
function mountChanges(server: FastifyInstance, { keys, peppers, clock }: AdminParts): void {
  const meansOf = (request: FastifyRequest): KeyMeans => ({ keys, peppers, clock, actor: actorOf(request) });
  const show = (record: KeyRecord | undefined): ShownKey => {
    if (record === undefined) throw keyNotFound();
    return showKey(record, clock.wall());
  };
  const change = async (id: KeyId, wish: KeyChange, request: FastifyRequest): Promise<ShownKey> =>
    show(changedRecord(await changeKey(id, wish, meansOf(request))));

  serveOperation(server, adminApi.changeKey, async ({ params, body, request }) => {
    const { name, scopes, machines } = body;
    const terms = { name, scopes, machines, limits: namedLimits(body) };
    return change(params.id, { action: "changed", terms }, request);
  });
  serveOperation(server, adminApi.rotateKey, async ({ params, body, request }) => {
    const { changed, token } = await rotateKey({ id: params.id, graceMs: body.grace }, meansOf(request));
    const shown = show(changedRecord(changed));
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
    serveOperation(server, operation, async ({ params, request }) => {
      changedRecord(await changeKey(params.id, { action: "revoked" }, meansOf(request)));
      return { id: params.id, state: "revoked" as const };
    });
  }
}

/** What was done to keys, and with them. */
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

function showEntry({ at, detail, request, ...same }: AuditEntry): ShownEntry {
  return { ...same, at: new Date(at).toISOString(), detail: detail ?? null, request: request ?? null };
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

/** Whoever may GET may ask for the HEAD too. */
function methodsByPath(): ReadonlyMap<string, readonly string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of [describeApi, ...Object.values(adminApi)]) {
    methods.getOrInsertComputed(path, () => []).push(...(method === "GET" ? ["GET", "HEAD"] : [method]));
  }
  return methods;
}
