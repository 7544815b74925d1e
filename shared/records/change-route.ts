import { Fault } from "../fault/fault.ts";
import type { Actor } from "./audit-entry.ts";
import { type KeyStore, type Replication, retryConflicts } from "./key-store.ts";
import type { Clock } from "../process/clock.ts";
import { type RouteRecord, routesMax, type RouteStore, type RouteTarget, routeTargets } from "./route-record.ts";

export interface RouteDependencies {
  readonly routes: RouteStore;
  /** A changed route may take a model away. The change waits for a replica, as the revocation of a key does. */
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
  /** The actor that the audit trail names. */
  readonly actor: Actor;
}

const contended = "The route was changed at the same time. Try again.";

export interface RouteChanged {
  readonly outcome: "changed" | "unchanged";
  readonly record: RouteRecord;
  readonly replication: Replication;
}

/** Sets the targets of a route for every gateway, whatever they were before. */
export async function setRoute(
  name: string,
  targets: readonly RouteTarget[],
  { routes, keys, clock, actor }: RouteDependencies,
): Promise<RouteChanged> {
  const attempt = async () => {
    const before = await routes.find(name);
    if (before !== undefined && JSON.stringify(before.targets) === JSON.stringify(targets)) {
      return { outcome: "unchanged", record: before } as const;
    }
    if (before === undefined && (await routes.list()).length >= routesMax) {
      const message = `There are ${routesMax} routes already (routesMax): remove one first.`;
      throw new Fault("route_change_refused", { message });
    }
    const at = clock.wall();
    const version = (before?.version ?? 0) + 1;
    const createdAt = before?.createdAt ?? at;
    const record = { ...before, name, version, targets: routeTargets.parse(targets), createdAt, changedAt: at };
    const detail = {
      targets: targets.map(targetText),
      ...(before && { was: { targets: before.targets.map(targetText) } }),
    };
    const entry = { at, ...actor, action: "route_set", route: name, name, detail } as const;
    return (await routes.write(record, entry)) === "written" ? ({ outcome: "changed", record } as const) : "conflict";
  };
  const made = await retryConflicts(attempt, contended);
  return { ...made, replication: await keys.awaitReplica() };
}

/** Removes a route for every gateway. Its name then means the model of that name again, if there is one. */
export async function removeRoute(
  name: string,
  { routes, keys, clock, actor }: RouteDependencies,
): Promise<Pick<RouteChanged, "replication">> {
  const attempt = async () => {
    const record = await routes.find(name);
    if (record === undefined) throw routeUnknown(name);
    const detail = { was: { targets: record.targets.map(targetText) } };
    const entry = { at: clock.wall(), ...actor, action: "route_removed", route: name, name, detail } as const;
    return (await routes.remove(record, entry)) === "written" ? record : "conflict";
  };
  await retryConflicts(attempt, contended);
  return { replication: await keys.awaitReplica() };
}

/** Formats a target as the command line reads it: `llama3.2`, `llama3.2 on attic,loft`, `llama3.2 with fast`, or `gpt-5 external`. */
export function targetText({ model, machines, label, external }: RouteTarget): string {
  const where = label === undefined ? machines && ` on ${machines.join(",")}` : ` with ${label}`;
  return `${model}${where ?? ""}${external ? " external" : ""}`;
}

export function routeUnknown(name: string): Fault {
  return new Fault("route_not_found", {
    message: `There is no route ${name}: \`trunkline routes list\` shows all.`,
    param: "route",
  });
}
