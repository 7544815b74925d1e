import type { FastifyInstance } from "fastify";
import type { Log } from "#shared/process/log.ts";
import { openRequests } from "#shared/requests/request-records.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { openUsage } from "#shared/usage/usage.ts";
import type { openFleet } from "./compose-fleet.ts";
import type { GatewayConfig } from "./config.ts";
import type { RouteRecords } from "./fleet/route-records.ts";
import type { BadKeys } from "./keys/bad-keys.ts";
import { serveMembers } from "./members/serve-members.ts";
import { OpenId } from "./operations/open-id.ts";
import { listModels } from "./requests/resolve-model.ts";

interface MembersParts {
  readonly config: GatewayConfig;
  readonly store: OpenedKeyStore;
  readonly badKeys: BadKeys;
  readonly fleet: Pick<ReturnType<typeof openFleet>, "models" | "idempotencyRecords">;
  readonly modelRoutes: RouteRecords;
  readonly log: Log;
}

/** Mounts the pages of members at the public port, where the site has members. */
export function openMembers(
  server: FastifyInstance,
  { config, store, fleet, modelRoutes, ...parts }: MembersParts,
): void {
  const { openId: settings, memberUrl: publicUrl } = config;
  if (settings === undefined || publicUrl === undefined) return;
  const openId = new OpenId(settings, { ...store, usedStates: fleet.idempotencyRecords, log: parts.log });
  serveMembers(server, {
    ...store,
    ...parts,
    openId,
    publicUrl,
    currency: config.currency,
    codes: fleet.idempotencyRecords,
    usage: openUsage(store.state),
    requests: openRequests(store.state),
    modelsOf: async (team) => listModels(await fleet.models.list(team), team, modelRoutes.table),
  });
}
