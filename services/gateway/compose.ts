import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { openUsage } from "#shared/usage/usage.ts";
import { BadKeys } from "./keys/bad-keys.ts";
import { allowCrossOrigin } from "./http/cross-origin.ts";
import { proveCallers } from "./keys/prove-callers.ts";
import type { GatewayConfig } from "./config.ts";
import type { AnswerMeter } from "./jobs/answer-course.ts";
import type { MachineRanking } from "./fleet/rank-machines.ts";
import { RequestReader } from "./api/request-reader.ts";
import { FleetModels } from "./jobs/fleet-models.ts";
import { FleetView } from "./operations/fleet-view.ts";
import { followPresence } from "./fleet/follow-presence.ts";
import type { LiveModels } from "./jobs/live-models.ts";
import { PermittedModels } from "./fleet/permitted-models.ts";
import { watchSecondConnections } from "./fleet/second-connections.ts";
import { closeServer, listen, readCertificate } from "./http/listen.ts";
import { refuseWithoutHeapRoom } from "./http/bound-uploads.ts";
import { openLimits, type OpenedLimits } from "./limits/open-limits.ts";
import { adminRoutes } from "./operations/admin-routes.ts";
import type { BodyLimit } from "./http/adopt-error.ts";
import { insistOnKnownName } from "./operations/operations-access.ts";
import { healthRoutes, metricsRoute, readiness } from "./operations/health-and-metrics.ts";
import { answerHeaders } from "./openapi/public-headers.ts";
import { publicDocument } from "./openapi/public-document.ts";
import { getReference } from "./openapi/get-reference.ts";
import { getModel, getModels, inferenceRoutes, type InferenceMeans } from "./api/routes.ts";
import { keepAccounts } from "./api/keep-accounts.ts";
import { addRateLimitHeaders } from "./api/answer-headers.ts";
import { refuseOtherMethods } from "./http/answer-faults.ts";
import { createServer } from "./server.ts";
import { openAccess, type Access } from "./compose-keys.ts";
import { openFleet } from "./compose-fleet.ts";

/** Largest request body on the operations port: the terms of a key take a few kilobytes. */
const operationsBodyBytesMax = 256 * 1024;

/** Time to record the last usage at a stop, even when the shutdown deadline has passed. */
const settleAtStopMs = 1_000;

interface GatewayParts {
  readonly config: GatewayConfig;
  readonly broker: Broker;
  readonly store: OpenedKeyStore;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly log: Log;
}

interface RunningGateway {
  readonly baseUrl: string;
  readonly operationsUrl: string;
}

/**
 * Builds a gateway from its parts and starts it. When the promise resolves, the gateway listens and knows its fleet.
 */
export async function startGateway(parts: GatewayParts): Promise<RunningGateway> {
  const { config, broker, store, lifecycle, log } = parts;
  const { clock } = store;
  const timing = timingAt(config.timeScale, config);
  const leaving = (): boolean => lifecycle.draining;
  let draining = false;

  const gateway = newToken();

  const permitted = new PermittedModels({ machines: store.machines, log });
  await permitted.load();
  const access = await openAccess(parts, permitted);
  const { watch } = access;
  const storeReady = { ready: () => watch.look() };
  const limited = openLimits(store.state, { gateway, clock, log });
  lifecycle.onStop("settlements", () => limited.settlements.stop(AbortSignal.timeout(settleAtStopMs)));

  const fleet = openFleet({ config, broker, store, watch, permitted, lifecycle, gateway, timing, log });
  const { roster, leftOut, floodGuard, meters, jobs, catalogues, models, routes, ranking, placer } = fleet;
  const { bodyBytesMax, trustedProxies } = config;
  const bodyLimit = { bodyBytesMax, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" };
  const server = createServer({
    log,
    ...bodyLimit,
    trustedProxies,
    tls: readCertificate("TRUNKLINE_TLS_", config),
    leaving,
    draining: () => draining,
    connections: config.connections,
    answers: { clientStallMs: timing.clientStallMs },
    clock,
    meter: meters.requests,
  });
  allowCrossOrigin(server, { origins: config.corsOrigins, exposedHeaders: Object.keys(answerHeaders) });
  const document = publicDocument(bodyLimit);
  getReference(server, document);
  const { knownKeys } = access;
  const { brokerWatch } = meters;
  const check = () =>
    readiness({ broker, brokerWatch, keys: storeReady, store: watch, knownKeys, clock, draining: leaving });
  healthRoutes(server, check);
  const reader = new RequestReader();
  lifecycle.onStop("reading thread", () => reader.stop());
  const cacheSaltOf = config.promptCache === "shared" ? undefined : saltsOf(store.peppers);
  const means = { reader, ranking, placer, timing, clock, log, cacheSaltOf };
  mountPublicRoutes(server, { access, limited, models, meter: meters.answers, ...means, ...bodyLimit });
  const operations = createServer({
    log,
    bodyBytesMax: operationsBodyBytesMax,
    bodyLimitName: "operationsBodyBytesMax",
    trustedProxies,
    tls: readCertificate("TRUNKLINE_OPERATIONS_TLS_", config.operationsTls),
    draining: () => false,
    connections: config.connections,
    clock,
  });
  insistOnKnownName(operations, config.operationsNames);
  healthRoutes(operations, check);
  metricsRoute(operations, meters, config.metricsToken);
  const { keys, machines, peppers, state } = store;
  const fleetModels = new FleetModels({ live: models, jobs, roster, timing, clock });
  const view = new FleetView({
    ...fleet,
    broker: brokerWatch,
    clock,
    absence: (modelId) => ranking.absence(modelId, undefined),
  });
  const badKeys = new BadKeys(clock);
  const { newest } = access;
  const usage = openUsage(state);
  adminRoutes(operations, { keys, newest, machines, peppers, usage, badKeys, fleet: fleetModels, view, clock, log });

  lifecycle.onStop("operations", async (deadline) => {
    fleetModels.stop();
    await closeServer(operations, { deadline, clock });
  });
  lifecycle.onStop("gateway", async (deadline) => {
    const cut = (): void => {
      jobs.cancelAll(new Fault("shutting_down", { message: "This gateway shuts down and could not finish in time." }));
    };
    deadline.addEventListener("abort", cut, { once: true });
    // By then load balancers know that this gateway is not ready, and send no more requests.
    await sleep(clock, config.graceMs ?? timing.readinessGraceMs, deadline).catch(() => undefined);
    draining = true;
    await closeServer(server, { deadline, clock });
  });

  const seconds = await watchSecondConnections({ config, broker, roster, lifecycle, timing, clock, log });
  await followPresence({ broker, roster, leftOut, catalogues, routes, floodGuard, seconds, timing, clock, log });
  await broker.flush();
  const { host, operationsHost } = config;
  const port = await listen(server, {
    host,
    port: config.port,
    hostVariable: "TRUNKLINE_HOST",
    portVariable: "TRUNKLINE_PORT",
  });
  const operationsPort = await listen(operations, {
    host: operationsHost,
    port: config.operationsPort,
    hostVariable: "TRUNKLINE_OPERATIONS_HOST",
    portVariable: "TRUNKLINE_OPERATIONS_PORT",
  });
  const scheme = config.tlsCertificateFile === undefined ? "http" : "https";
  const baseUrl = `${scheme}://${urlHost(host)}:${port}/v1`;
  const operationsScheme = config.operationsTls.tlsCertificateFile === undefined ? "http" : "https";
  const operationsUrl = `${operationsScheme}://${urlHost(operationsHost)}:${operationsPort}`;
  log.info({ baseUrl, operationsUrl }, "gateway listens");
  return { baseUrl, operationsUrl };
}

interface PublicParts extends BodyLimit, InferenceMeans {
  readonly access: Access;
  readonly limited: OpenedLimits;
  readonly models: LiveModels;
  readonly ranking: MachineRanking;
  readonly meter: AnswerMeter;
}

/** Returns a function for the cache salts of keys. Each salt is made once for as long as the key's record is known. */
function saltsOf({ current }: Peppers): (key: KeyRecord) => string {
  const salts = new WeakMap<KeyRecord, string>();
  return (key) => salts.getOrInsertComputed(key, () => current.cacheSalt(key.id));
}

/** Mounts all routes under `/v1`. Routes inside the inner scopes are reached with a proven key only. */
function mountPublicRoutes(server: FastifyInstance, parts: PublicParts): void {
  const { limited, meter, clock, log, bodyBytesMax, bodyLimitName } = parts;
  void server.register(
    async (v1) => {
      proveCallers(v1, parts.access);
      addRateLimitHeaders(v1, { limits: limited.limits, log });
      getModels(v1, parts);
      getModel(v1, parts);
      await v1.register(async (inference) => {
        refuseWithoutHeapRoom(inference, { clock });
        keepAccounts(inference, { ...limited, meter, clock, log, bodyBytesMax, bodyLimitName });
        inferenceRoutes(inference, parts);
      });
    },
    { prefix: "/v1" },
  );
  refuseOtherMethods(server, "/v1/models", ["GET", "HEAD"]);
  refuseOtherMethods(server, "/v1/models/*", ["GET", "HEAD"]);
  refuseOtherMethods(server, "/v1/chat/completions", ["POST"]);
  refuseOtherMethods(server, "/v1/responses", ["POST"]);
  refuseOtherMethods(server, "/v1/completions", ["POST"]);
  refuseOtherMethods(server, "/v1/embeddings", ["POST"]);
}

/** Returns a listening host as a URL writes it. The loopback address stands for a host that means all addresses. */
function urlHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}
