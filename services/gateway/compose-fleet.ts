import type { Broker } from "#shared/broker/broker.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import type { StoreWatch } from "./keys/store-watch.ts";
import type { GatewayConfig } from "./config.ts";
import { Breakers } from "./fleet/breakers.ts";
import { BusyClaims } from "./fleet/busy-claims.ts";
import { JobRoutes } from "./fleet/job-routes.ts";
import { OpenJobs } from "./jobs/open-jobs.ts";
import { JobPlacer } from "./jobs/place-job.ts";
import { MachineRanking } from "./fleet/rank-machines.ts";
import { Catalogues, findModel } from "./fleet/catalogues.ts";
import { FloodGuard } from "./fleet/flood-guard.ts";
import { type KnownModels, SqliteKnownModels } from "./fleet/known-models.ts";
import { askCatalogue, LiveModels } from "./jobs/live-models.ts";
import type { PermittedModels } from "./fleet/permitted-models.ts";
import { RedisKnownModels } from "./fleet/redis-known-models.ts";
import { LeftOut, Roster } from "./fleet/roster.ts";
import { GatewayMeters } from "./metrics/gateway-meters.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { BoundedLabels, Exposition, machineLabelsMax } from "./metrics/exposition.ts";
import { FleetMeters } from "./metrics/fleet-meters.ts";

interface FleetParts {
  readonly config: Pick<GatewayConfig, "waitMs">;
  readonly broker: Broker;
  readonly store: OpenedKeyStore;
  readonly watch: StoreWatch;
  readonly permitted: PermittedModels;
  readonly lifecycle: Lifecycle;
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  readonly timing: Timing;
  readonly log: Log;
}

/** Opens the parts that know the machines, place jobs on them and measure both. */
export function openFleet({ config, broker, store, watch, permitted, lifecycle, gateway, timing, log }: FleetParts) {
  const { clock } = store;
  const roster = new Roster(timing);
  const leftOut = new LeftOut({ forgetMs: timing.offlineAfterMs });
  const exposition = new Exposition();
  const machineLabels = new BoundedLabels(machineLabelsMax);
  const meter = new FleetMeters(exposition, machineLabels);
  const floodGuard = new FloodGuard({ timing, clock, log, meter });
  const jobs = new OpenJobs({ broker, gateway, roster, floodGuard, timing, clock, log, meter });
  lifecycle.onStop("jobs", () => jobs.stop());
  const knownModels = openKnownModels(store);
  const permits = (machine: string, modelId: string): boolean => permitted.permits(machine, modelId);
  const catalogues = new Catalogues({
    ask: (target) => {
      const withinMs = timing.catalogueWaitMs + jobs.roundTripMsTo(target);
      return askCatalogue({ jobs, target, withinMs, clock });
    },
    knownModels,
    permits,
    clock,
    log,
  });
  permitted.onChange(() => catalogues.believeAnew());
  const meters = new GatewayMeters({
    exposition,
    machineLabels,
    fleet: meter,
    broker,
    keys: { ready: () => watch.look() },
    store: watch,
    clock,
    machines: () => roster.all(clock.now()),
    offered: (model) => {
      const present = roster.present(clock.now()).flatMap(({ presence }) => catalogues.of(presence));
      return findModel(present, model)?.id;
    },
    openJobs: () => jobs.size,
  });
  lifecycle.onStop("meters", () => meters.stop());
  const models = new LiveModels({ jobs, roster, permits, timing, clock });
  const breakers = new Breakers(timing);
  const claims = new BusyClaims(timing);
  const routes = new JobRoutes({ roster, catalogues, breakers, claims, clock, random: Math.random });
  const ranking = new MachineRanking({ roster, catalogues, knownModels, routes, waitMs: config.waitMs, timing, clock });
  const placer = new JobPlacer({ ranking, breakers, routes, jobs, timing, clock, log, meter });
  return { roster, leftOut, floodGuard, meters, jobs, catalogues, models, breakers, claims, routes, ranking, placer };
}

function openKnownModels(store: OpenedKeyStore): KnownModels {
  return store.state.kind === "redis"
    ? new RedisKnownModels(store.state.redis)
    : new SqliteKnownModels(store.state.database);
}
