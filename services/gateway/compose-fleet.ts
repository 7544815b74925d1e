import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import type { StoreWatch } from "./keys/store-watch.ts";
import type { GatewayConfig } from "./config.ts";
import { Breakers } from "./routing/breakers.ts";
import { JobPlacements } from "./routing/job-placements.ts";
import { lineTo } from "./jobs/open-job.ts";
import { OpenJobs } from "./jobs/open-jobs.ts";
import { PromptCounter } from "./requests/count-prompts.ts";
import { Keeper } from "./placing/keeper.ts";
import { openLease } from "./placing/redis-lease.ts";
import { OwnIdempotencyRecords } from "./jobs/idempotency-records.ts";
import { RedisIdempotencyRecords } from "./jobs/redis-idempotency-records.ts";
import { AnswerResumer } from "./jobs/resume-answer.ts";
import { RefusedEfforts } from "./requests/refused-efforts.ts";
import { JobRunner } from "./requests/run-job.ts";
import { MachineRanking } from "./routing/rank-machines.ts";
import { Catalogues, findModel } from "./fleet/catalogues.ts";
import { FloodGuard } from "./fleet/flood-guard.ts";
import { openKnownModels } from "#shared/store/known-models.ts";
import { askCatalogue, LiveModels } from "./jobs/live-models.ts";
import { losesMachine, type MachineRecords } from "./fleet/machine-records.ts";
import { SeenMachines } from "./fleet/note-seen.ts";
import { LeftOut, Roster } from "./fleet/roster.ts";
import { PlacementSharing } from "./routing/share-placements.ts";
import { machineLabelsMax, openMeters } from "./metrics/request-meters.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { Exposition, BoundedLabels } from "./metrics/exposition.ts";
import { countFleetEvents } from "./metrics/fleet-meters.ts";

/** For how long a gateway is the one that tells machines what to keep. */
const keeperLeaseMs = 4_500;

interface FleetDependencies {
  readonly config: Pick<GatewayConfig, "waitMs">;
  readonly broker: Broker;
  readonly store: OpenedKeyStore;
  readonly watch: StoreWatch;
  readonly records: MachineRecords;
  readonly lifecycle: Lifecycle;
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  readonly site: { readonly gateways: number };
  readonly timing: Timing;
  readonly log: Log;
}

/** Opens the parts that know the machines, place jobs on them and measure both. */
export function openFleet({
  config,
  broker,
  store,
  watch,
  records,
  lifecycle,
  gateway,
  site,
  timing,
  log,
}: FleetDependencies) {
  const { state, peppers, clock } = store;
  const roster = new Roster(timing, (machine) => records.barred(machine));
  const leftOut = new LeftOut({ forgetMs: timing.offlineAfterMs });
  const exposition = new Exposition();
  const machineLabels = new BoundedLabels(machineLabelsMax);
  const meter = countFleetEvents(exposition, machineLabels);
  const floodGuard = new FloodGuard({ timing, clock, log, meter });
  const jobs = new OpenJobs({ broker, gateway, roster, floodGuard, timing, clock, log, meter });
  lifecycle.onStop("jobs", () => jobs.stop());
  const knownModels = openKnownModels(state);
  const permits = (machine: string, modelId: string): boolean => records.permits(machine, modelId);
  const { external } = records;
  const catalogues = new Catalogues({
    ask: (target) => {
      const withinMs = timing.catalogueWaitMs + lineTo(target, { broker, clock, roster }).roundTripMs;
      return askCatalogue({ jobs, target, withinMs, clock, log });
    },
    knownModels,
    permits,
    external,
    clock,
    log,
  });
  const seen = new SeenMachines({ roster, records, catalogues, machines: store.machines, clock, log });
  lifecycle.onStop("machines seen", () => seen.stop());
  records.onChange((changes) => {
    for (const change of changes) {
      catalogues.believeAnew(change.name);
      if (!losesMachine(change)) continue;
      void seen.leaving(change.name);
      roster.forget(change.name);
      jobs.cancelOn(change.name, machineTakenAway());
    }
  });
  const meters = openMeters({
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
  const models = new LiveModels({ jobs, roster, permits, external, timing, clock });
  const breakers = new Breakers(timing);
  const placements = new JobPlacements({ roster, catalogues, breakers, external, clock, random: Math.random });
  const book = placements.memory;
  // No other gateway can have the same store unless it is Redis.
  const sharing =
    state.kind === "redis"
      ? new PlacementSharing({ broker, gateway, book, peppers, site, timing, clock, log })
      : undefined;
  if (sharing !== undefined) {
    // A gateway that is alone tells nobody. A gateway that comes is told within `placementsRepeatMs`.
    book.onChange(() => {
      if (site.gateways > 1 || sharing.others.size > 0) sharing.changed();
    });
  }
  lifecycle.onStop("placements", () => sharing?.stop());
  const ranking = new MachineRanking({
    roster,
    catalogues,
    knownModels,
    placements,
    external,
    waitMs: config.waitMs,
    timing,
    clock,
  });
  const refusedEfforts = new RefusedEfforts(clock);
  const runner = new JobRunner({ ranking, breakers, placements, refusedEfforts, jobs, timing, clock, log, meter });
  const resumer = new AnswerResumer({ jobs, roster, catalogues, timing, clock });
  const counter = new PromptCounter({ jobs, placements, timing, clock });
  const lease = openLease(state, { name: "keeper", gateway, forMs: keeperLeaseMs });
  const keeper = new Keeper({ ...store, lease, roster, catalogues, permits, broker, timing, log });
  const keeping = keeper.start();
  lifecycle.onStop("keeper", () => keeping.stop());
  /** Returns true while an agent that was not paired has this name. */
  const isNameUsed = (machine: string): boolean =>
    roster.isPresent(machine, clock.now()) && records.get(machine)?.publicKey === undefined;
  return {
    isNameUsed,
    roster,
    leftOut,
    floodGuard,
    fleetMeter: meter,
    meters,
    jobs,
    catalogues,
    models,
    breakers,
    sharing,
    placements,
    ranking,
    runner,
    resumer,
    idempotencyRecords:
      state.kind === "redis" ? new RedisIdempotencyRecords(state.redis) : new OwnIdempotencyRecords(clock),
    counter,
    keeper,
  };
}

/** The fault of a job whose machine was revoked or renamed. Another machine may run the job from its beginning. */
function machineTakenAway(): Fault {
  return new Fault("agent_offline", {
    message: "The operator took the GPU machine away that worked on this request.",
    internal: "the machine was revoked or renamed",
  });
}
