import type { FastifyInstance } from "fastify";
import { replicatedIn } from "#shared/keys/change-key.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import { removeRoute, routeUnknown, setRoute } from "#shared/routes/change-route.ts";
import { type RouteStore, showRoute } from "#shared/routes/route-record.ts";
import { adminApi } from "./admin-api.ts";
import { actorOf } from "./operations-access.ts";
import { serveOperation } from "./serve-operation.ts";

interface RouteParts {
  readonly routes: RouteStore;
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
}

/** Mounts the operations that show and change the names that stand for models. */
export function mountModelRoutes(server: FastifyInstance, { routes, keys, clock }: RouteParts): void {
  serveOperation(server, adminApi.listRoutes, async () => {
    return { object: "list" as const, data: (await routes.list()).map(showRoute) };
  });
  serveOperation(server, adminApi.showRoute, async ({ params: { route } }) => {
    const record = await routes.find(route);
    if (record === undefined) throw routeUnknown(route);
    return showRoute(record);
  });
  serveOperation(server, adminApi.setRoute, async ({ params: { route }, body: { targets }, request }) => {
    const changed = await setRoute(route, targets, { routes, keys, clock, actor: actorOf(request) });
    return { ...showRoute(changed.record), ...replicatedIn(changed) };
  });
  serveOperation(server, adminApi.removeRoute, async ({ params: { route }, request }) => {
    const changed = await removeRoute(route, { routes, keys, clock, actor: actorOf(request) });
    return { route, state: "removed" as const, ...replicatedIn(changed) };
  });
}
