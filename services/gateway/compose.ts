import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/token.ts";
import { openUsage } from "#shared/usage/open-usage.ts";
import { BadKeys } from "./access/bad-keys.ts";
import { allowCrossOrigin } from "./access/cross-origin.ts";
import { followKeyChanges } from "./access/follow-key-changes.ts";
import { KnownKeys } from "./access/known-keys.ts";
import { moveToNewPepper } from "./access/move-to-new-pepper.ts";
import { proveCallers } from "./access/prove-callers.ts";
import { RunningRequests } from "./access/running-requests.ts";
import type { GatewayConfig } from "./config.ts";
import type { AnswerMeter } from "./dispatch/answer-course.ts";
import { Breakers } from "./dispatch/breakers.ts";
import { JobRoutes } from "./dispatch/job-routes.ts";
import { OpenJobs } from "./dispatch/open-jobs.ts";
import { JobPlacer } from "./dispatch/place-job.ts";
import { MachineRanking } from "./dispatch/rank-machines.ts";
import { ReadAside } from "./asked/read-aside.ts";
import { askCatalogue } from "./fleet/ask-catalogue.ts";
import { Catalogues } from "./fleet/catalogues.ts";
import { FleetModels } from "./fleet/fleet-models.ts";
import { findModel } from "./fleet/find-model.ts";
import { FleetView } from "./fleet/fleet-view.ts";
import { followPresence } from "./fleet/follow-presence.ts";
import type { KnownModels } from "./fleet/known-models.ts";
import { LeftOut } from "./fleet/left-out.ts";
import { LiveModels } from "./fleet/live-models.ts";
import { RedisKnownModels } from "./fleet/redis-known-models.ts";
import { Roster } from "./fleet/roster.ts";
import { SqliteKnownModels } from "./fleet/sqlite-known-models.ts";
import { closeGently } from "./edge/close-gently.ts";
import { insistOnHeapRoom } from "./edge/heap-room.ts";
import { openLimits, type OpenedLimits } from "./settlement/open-limits.ts";
import { listen } from "./edge/listen.ts";
import { adminRoutes } from "./operations/admin-routes.ts";
import type { BodyLimit } from "./intake/adopt-error.ts";
import { GatewayMeters } from "./meters/gateway-meters.ts";
import { healthRoutes } from "./operations/health-routes.ts";
import { metricsRoute } from "./operations/metrics-route.ts";
import { readiness } from "./operations/readiness.ts";
import { publicDocument } from "./reference/public-document.ts";
import { getDocs } from "./routes/get-docs.ts";
import { getModel } from "./routes/get-model.ts";
import { getModels } from "./routes/get-models.ts";
import type { InferenceMeans } from "./routes/inference-means.ts";
import { getOpenApi } from "./routes/get-openapi.ts";
import { keepAccounts } from "./routes/keep-accounts.ts";
import { postChatCompletions } from "./routes/post-chat-completions.ts";
import { postCompletions } from "./routes/post-completions.ts";
import { postEmbeddings } from "./routes/post-embeddings.ts";
import { postResponses } from "./routes/post-responses.ts";
import { tellStandingAlways } from "./routes/tell-standing.ts";
import { readCertificate } from "./edge/read-certificate.ts";
import { refuseOtherMethods } from "./edge/refuse-other-methods.ts";
import { createServer } from "./server.ts";

/** The largest request to the operations port: the terms of a key take a few kilobytes. */
const operationsBodyBytesMax = 256 * 1024;

/** What was used until the very end is written down even when the time to stop in is over. */
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

/** Builds a gateway of its parts and starts it. When this resolves it listens, and knows its fleet. */
export async function startGateway(parts: GatewayParts): Promise<RunningGateway> {
  const { config, broker, store, lifecycle, clock, log } = parts;
  const timing = timingAt(config.timeScale, config);
  const leaving = (): boolean => lifecycle.draining;
  let draining = false;

  const gateway = newToken();

  const access = await openAccess(parts);
  const limited = openLimits(store.state, { gateway, clock, log });
  lifecycle.onStop("settlements", () => limited.stop(AbortSignal.timeout(settleAtStopMs)));

  const roster = new Roster(timing);
  const leftOut = new LeftOut({ forgetMs: timing.offlineAfterMs });
  const meters: GatewayMeters = new GatewayMeters({
    broker,
    keys: store.keys,
    clock,
    machines: () => roster.all(clock.now()),
    offered: (model) => {
      const present = roster.present(clock.now()).flatMap(({ presence }) => catalogues.of(presence));
      return findModel(present, model)?.id;
    },
    openJobs: () => jobs.size,
  });
  lifecycle.onStop("meters", () => meters.stop());
  const jobs: OpenJobs = new OpenJobs({ broker, gateway, roster, timing, clock, log, meter: meters.fleet });
  lifecycle.onStop("jobs", () => jobs.stop());
  const knownModels = openKnownModels(store);
  const catalogues: Catalogues = new Catalogues({
    ask: (target) => askCatalogue({ jobs, target, withinMs: timing.catalogueWaitMs, clock }),
    knownModels,
    clock,
    log,
  });
  const models = new LiveModels({ jobs, roster, timing, clock });
  const breakers = new Breakers(timing);
  const routes = new JobRoutes({ roster, catalogues, breakers, clock, random: Math.random });
  const known = { roster, catalogues, knownModels, routes };
  const ranking = new MachineRanking({ ...known, waitMs: config.waitMs, timing, clock });
  const placer = new JobPlacer({ ranking, breakers, routes, jobs, timing, clock, log, meter: meters.fleet });

  const { bodyBytesMax, trustedProxies } = config;
  const bodyLimit = { bodyBytesMax, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" };
  const server = createServer({
    log,
    ...bodyLimit,
    trustedProxies,
    tls: readCertificate(config),
    leaving,
    draining: () => draining,
    meter: meters.requests,
  });
  allowCrossOrigin(server, config.corsOrigins);
  const document = publicDocument(bodyLimit);
  getOpenApi(server, document);
  getDocs(server, document);
  const { knownKeys } = access;
  const { brokerWatch } = meters;
  const check = () => readiness({ broker, brokerWatch, keys: store.keys, knownKeys, clock, draining: leaving });
  healthRoutes(server, check);
  const reader = new ReadAside();
  lifecycle.onStop("reading thread", () => reader.stop());
  const means = { reader, ranking, placer, timing, clock, log, interimMs: config.interimMs };
  mountPublicRoutes(server, { access, limited, models, meter: meters.answers, ...means, ...bodyLimit });
  const operations = createServer({
    log,
    bodyBytesMax: operationsBodyBytesMax,
    bodyLimitName: "operationsBodyBytesMax",
    trustedProxies,
    draining: () => false,
  });
  healthRoutes(operations, check);
  metricsRoute(operations, meters);
  const { keys, peppers, state } = store;
  const fleet = new FleetModels({ live: models, jobs, roster, timing, clock });
  const view = new FleetView({
    roster,
    leftOut,
    catalogues,
    jobs,
    routes,
    breakers,
    clock,
    absence: (modelId) => ranking.absence(modelId, undefined),
  });
  const badKeys = new BadKeys(clock);
  adminRoutes(operations, { keys, peppers, usage: openUsage(state), badKeys, fleet, view, clock, log });

  lifecycle.onStop("operations", async (deadline) => {
    fleet.stop();
    await closeGently(operations, { deadline, clock });
  });
  lifecycle.onStop("gateway", async (deadline) => {
    const cut = (): void => {
      jobs.cancelAll(new Fault("shutting_down", { message: "This gateway shuts down and could not finish in time." }));
    };
    deadline.addEventListener("abort", cut, { once: true });
    // Balancers have heard by then that this gateway is not ready, and send no more.
    await sleep(clock, config.graceMs ?? timing.readinessGraceMs, deadline).catch(() => undefined);
    draining = true;
    await closeGently(server, { deadline, clock });
  });

  await followPresence({ broker, roster, leftOut, catalogues, routes, timing, clock, log });
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
  const operationsUrl = `http://${urlHost(operationsHost)}:${operationsPort}`;
  log.info({ baseUrl, operationsUrl }, "gateway listens");
  return { baseUrl, operationsUrl };
}

/** Who may call, as far as this gateway knows, and what it hears of it. */
interface Access {
  readonly knownKeys: KnownKeys;
  readonly badKeys: BadKeys;
  readonly running: RunningRequests;
}

async function openAccess({ config, store, lifecycle, clock, log }: GatewayParts): Promise<Access> {
  const { keys, peppers } = store;
  const running = new RunningRequests();
  const knownKeys = new KnownKeys({
    keys,
    peppers,
    clock,
    awayMs: config.keysAwayMs,
    onOldPepper: (token, { record }) => void moveToNewPepper({ token, record }, { keys, peppers, clock, log }),
  });
  const changes = await store.openChanges();
  lifecycle.onStop("key changes", () => changes.close());
  followKeyChanges({ changes, keys, knownKeys, running, log });
  return { knownKeys, badKeys: new BadKeys(clock), running };
}

interface PublicParts extends BodyLimit, InferenceMeans {
  readonly access: Access;
  readonly limited: OpenedLimits;
  readonly models: LiveModels;
  readonly ranking: MachineRanking;
  readonly meter: AnswerMeter;
}

/** Everything under `/v1`. Whatever is mounted inside the inner scopes is reached with a proven key only. */
function mountPublicRoutes(server: FastifyInstance, parts: PublicParts): void {
  const { limited, meter, clock, log, bodyBytesMax, bodyLimitName } = parts;
  void server.register(
    async (v1) => {
      proveCallers(v1, parts.access);
      tellStandingAlways(v1, { limits: limited.limits, log });
      getModels(v1, parts);
      getModel(v1, parts);
      await v1.register(async (inference) => {
        insistOnHeapRoom(inference, { clock });
        keepAccounts(inference, { ...limited, meter, clock, log, bodyBytesMax, bodyLimitName });
        postChatCompletions(inference, parts);
        postResponses(inference, parts);
        postCompletions(inference, parts);
        postEmbeddings(inference, parts);
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

function openKnownModels(store: OpenedKeyStore): KnownModels {
  return store.state.kind === "redis"
    ? new RedisKnownModels(store.state.redis)
    : new SqliteKnownModels(store.state.database);
}

/** What to write into a URL for a host to listen on: all addresses are reached by the loopback one. */
function urlHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}
