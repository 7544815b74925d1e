import type { FastifyInstance } from "fastify";
import type { Log } from "#shared/process/log.ts";
import { openRequests } from "#shared/requests/request-records.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { openUsage } from "#shared/usage/usage.ts";
import type { openFleet } from "./compose-fleet.ts";
import type { GatewayConfig } from "./config.ts";
import type { RouteRecords } from "./fleet/route-records.ts";
import type { BadKeys } from "./keys/bad-keys.ts";
import { type OwnPlayground, proveOwnPlayground } from "./members/own-playground.ts";
import { serveMembers } from "./members/serve-members.ts";
import { OpenId } from "./operations/open-id.ts";
import { listModels } from "./requests/resolve-model.ts";

interface MembersParts {
  readonly config: GatewayConfig;
  readonly store: OpenedKeyStore;
  readonly access: Omit<OwnPlayground, "clock"> & { readonly badKeys: BadKeys };
  readonly fleet: Pick<ReturnType<typeof openFleet>, "models" | "idempotencyRecords">;
  readonly modelRoutes: RouteRecords;
  /** Mounts the routes that call models, for requests that `prove` lets in. */
  readonly mountPlayground: (server: FastifyInstance, prove: (scope: FastifyInstance) => void) => void;
  readonly log: Log;
}

/** Mounts the pages of members at the public port, where the site has members. */
export function openMembers(
  server: FastifyInstance,
  { config, store, access, fleet, modelRoutes, mountPlayground, log }: MembersParts,
): void {
  const { openId: settings, memberUrl: publicUrl } = config;
  if (settings === undefined || publicUrl === undefined) return;
  const openId = new OpenId(settings, { ...store, usedStates: fleet.idempotencyRecords, log });
  serveMembers(server, {
    ...store,
    badKeys: access.badKeys,
    log,
    openId,
    publicUrl,
    currency: config.currency,
    codes: fleet.idempotencyRecords,
    usage: openUsage(store.state),
    requests: openRequests(store.state),
    mountPlayground: (scope, prove) =>
      mountPlayground(scope, (own) => proveOwnPlayground(own, prove, { ...access, clock: store.clock })),
    modelsOf: async (team) => listModels(await fleet.models.list(team), team, modelRoutes.table),
  });
}
