import type { AlertSender } from "./alerts/alert-sender.ts";
import { faultShapes } from "./apis/apis.ts";
import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import type { HistoryReader } from "#shared/history/history.ts";
import { openAlarmStore } from "#shared/alerts/alarm-store.ts";
import { openRequests } from "#shared/requests/request-records.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { openEndUsers } from "#shared/usage/end-users.ts";
import { openUsage } from "#shared/usage/usage.ts";
import type { openFleet } from "./compose-fleet.ts";
import type { GatewayConfig } from "./config.ts";
import type { MachineRecords } from "./fleet/machine-records.ts";
import type { RouteRecords } from "./fleet/route-records.ts";
import { type Certificate, closeServer } from "./http/listen.ts";
import { FleetModels } from "./jobs/fleet-models.ts";
import type { Settlements } from "./limits/settlements.ts";
import type { RunningRequests } from "./keys/authenticate.ts";
import { BadKeys } from "./keys/bad-keys.ts";
import type { NewestRecords } from "./keys/follow-key-changes.ts";
import { adminRoutes } from "./operations/admin-api.ts";
import { FleetView } from "./operations/fleet-view.ts";
import { healthRoutes, metricsRoute, type Readiness } from "./operations/health-and-metrics.ts";
import { assertKnownName } from "./operations/operations-access.ts";
import { OpenId } from "./operations/open-id.ts";
import { provePlayground } from "./operations/playground-access.ts";
import { serveConsole } from "./operations/serve-console.ts";
import type { AdminParts } from "./operations/serve-operation.ts";
import { SiteRequests } from "./operations/site-requests.ts";
import { sessionRoutes } from "./operations/sign-in.ts";
import { EventTeller } from "./operations/tell-events.ts";
import { createServer } from "./server.ts";

/** Largest request body on the operations port: pictures for the playground, and a few kilobytes for all else. */
const operationsBodyBytesMax = 8 * 1024 * 1024;

interface OperationsParts {
  readonly config: GatewayConfig;
  readonly store: OpenedKeyStore;
  readonly access: { readonly newest: NewestRecords; readonly running: RunningRequests };
  readonly fleet: ReturnType<typeof openFleet>;
  readonly records: MachineRecords;
  readonly modelRoutes: RouteRecords;
  readonly history: HistoryReader;
  readonly settlements: Pick<Settlements, "running">;
  readonly alertSender: AlertSender;
  readonly broker: Broker;
  /** Returns the reason for which this gateway closed the latest connection of a machine. */
  readonly whyClosed: ((publicKey: string | undefined) => string | undefined) | undefined;
  readonly check: () => Promise<Readiness>;
  readonly addresses: AdminParts["addresses"];
  /** Mounts the routes that call models, for requests that `prove` lets in. */
  readonly mountPlayground: (server: FastifyInstance, prove: (scope: FastifyInstance) => void) => void;
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  readonly publicTls: Certificate | undefined;
  readonly tls: Certificate | undefined;
  readonly lifecycle: Lifecycle;
  readonly log: Log;
}

/** Builds the server of the operations port: readiness, metrics, the admin API and the console. */
export function openOperations(parts: OperationsParts): FastifyInstance {
  const { config, store, access, fleet, records, modelRoutes, addresses, alertSender, lifecycle, log } = parts;
  const { clock } = store;
  const server = createServer({
    faultShapes,
    log,
    bodyBytesMax: operationsBodyBytesMax,
    bodyLimitName: "operationsBodyBytesMax",
    trustedProxies: config.trustedProxies,
    tls: parts.tls,
    connections: { ...config, onlyProxies: false },
    clock,
  });
  assertKnownName(server, config.operationsNames);
  healthRoutes(server, parts.check);
  metricsRoute(server, fleet.meters, config.metricsToken);
  const fleetModels = new FleetModels({ live: fleet.models, jobs: fleet.jobs, roster: fleet.roster, clock });
  const view = new FleetView({
    ...fleet,
    broker: fleet.meters.brokerWatch,
    records,
    whyClosed: parts.whyClosed,
    lastSeen: () => store.machines.lastSeen(),
    clock,
    modelRoutes,
    absenceOf: (targets, asked) => fleet.ranking.absenceOf(targets, asked),
  });
  const requests = openRequests(store.state);
  const events = new EventTeller({ view, requests, keys: store.keys, clock, log });
  const running = new SiteRequests({ ...parts, ...store, clock });
  const proof = { ...store, keys: access.newest, badKeys: new BadKeys(clock) };
  adminRoutes(server, {
    ...store,
    alertSender,
    refusalOfAlert: (url) => alertSender.refusalOf(url),
    currency: config.currency,
    newest: access.newest,
    usage: openUsage(store.state),
    endUsers: openEndUsers(store.state),
    alarms: openAlarmStore(store.state),
    requests,
    history: parts.history,
    events,
    running,
    badKeys: proof.badKeys,
    isNameUsed: fleet.isNameUsed,
    fleet: fleetModels,
    keeper: fleet.keeper,
    view,
    siteParts: { ...parts, loads: fleet.placements.memory.openLoads, sharing: fleet.sharing },
    addresses,
    log,
  });
  const openId = config.openId && new OpenId(config.openId, { ...proof, usedStates: fleet.idempotencyRecords, log });
  sessionRoutes(server, { ...proof, written: store.keys, openId, addresses, log });
  parts.mountPlayground(server, (scope) => provePlayground(scope, { ...proof, running: access.running }));
  serveConsole(server);
  lifecycle.onStop("operations", async (deadline) => {
    fleetModels.stop();
    events.close();
    running.close();
    await closeServer(server, { deadline, clock });
  });
  return server;
}
