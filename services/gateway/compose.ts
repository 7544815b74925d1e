import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { OpenedKeyStore } from "#shared/keys/open-key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { timingAt, type Timing } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/token.ts";
import { authenticate } from "./access/authenticate.ts";
import { setKey } from "./access/key-of.ts";
import type { GatewayConfig } from "./config.ts";
import { OpenJobs } from "./dispatch/open-jobs.ts";
import { JobPlacer } from "./dispatch/place-job.ts";
import { askCatalogue } from "./fleet/ask-catalogue.ts";
import { Catalogues } from "./fleet/catalogues.ts";
import { followPresence } from "./fleet/follow-presence.ts";
import type { KnownModels } from "./fleet/known-models.ts";
import { LiveModels } from "./fleet/live-models.ts";
import { RedisKnownModels } from "./fleet/redis-known-models.ts";
import { Roster } from "./fleet/roster.ts";
import { SqliteKnownModels } from "./fleet/sqlite-known-models.ts";
import { closeGently } from "./close-gently.ts";
import { listen } from "./listen.ts";
import { healthRoutes } from "./operations/health-routes.ts";
import { readiness } from "./operations/readiness.ts";
import { getModel } from "./routes/get-model.ts";
import { getModels } from "./routes/get-models.ts";
import { postChatCompletions } from "./routes/post-chat-completions.ts";
import { readCertificate } from "./read-certificate.ts";
import { createServer, refuseOtherMethods } from "./server.ts";

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
  const draining = (): boolean => lifecycle.draining;

  const roster = new Roster(timing);
  const jobs = new OpenJobs({ broker, gateway: newToken(), roster, timing, clock, log });
  lifecycle.onStop("jobs", () => jobs.stop());
  const knownModels = openKnownModels(store);
  const catalogues = new Catalogues({
    ask: (target) => askCatalogue({ jobs, target, withinMs: timing.catalogueWaitMs, clock }),
    knownModels,
    clock,
    log,
  });
  const models = new LiveModels({ jobs, roster, timing, clock });
  const placer = new JobPlacer({ roster, catalogues, knownModels, jobs, timing, clock, random: Math.random });

  const server = createServer({ log, bodyBytesMax: config.bodyBytesMax, tls: readCertificate(config), draining });
  const check = () => readiness({ broker, keys: store.keys, draining });
  healthRoutes(server, check);
  mountPublicRoutes(server, { store, models, placer, timing, clock, log });
  const operations = createServer({ log, bodyBytesMax: config.bodyBytesMax, draining: () => false });
  healthRoutes(operations, check);

  lifecycle.onStop("operations", () => operations.close());
  lifecycle.onStop("gateway", async (deadline) => {
    const cut = (): void => {
      jobs.cancelAll(new Fault("shutting_down", { message: "This gateway shuts down and could not finish in time." }));
    };
    deadline.addEventListener("abort", cut, { once: true });
    await closeGently(server, { deadline, clock });
  });

  await followPresence({ broker, roster, catalogues, timing, clock, log });
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

interface PublicParts {
  readonly store: OpenedKeyStore;
  readonly models: LiveModels;
  readonly placer: JobPlacer;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/** Everything under `/v1`. Whatever is mounted inside the inner scope is reached with a proven key only. */
function mountPublicRoutes(server: FastifyInstance, parts: PublicParts): void {
  const { keys, pepper } = parts.store;
  void server.register(
    async (v1) => {
      v1.addHook("onRequest", async (request) => {
        setKey(request, await authenticate(request.headers.authorization, { keys, pepper, clock: parts.clock }));
      });
      getModels(v1, parts);
      getModel(v1, parts);
      postChatCompletions(v1, parts);
    },
    { prefix: "/v1" },
  );
  refuseOtherMethods(server, "/v1/models", ["GET", "HEAD"]);
  refuseOtherMethods(server, "/v1/models/*", ["GET", "HEAD"]);
  refuseOtherMethods(server, "/v1/chat/completions", ["POST"]);
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
