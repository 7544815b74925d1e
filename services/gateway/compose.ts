import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import { AlertSender } from "./alerts/alert-sender.ts";
import { moveAlerts } from "./alerts/move-alerts.ts";
import { ImageFetcher } from "./images/image-fetcher.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { openEndUsers } from "#shared/usage/end-users.ts";
import { openHistory } from "#shared/history/history.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import type { RecordKind } from "#shared/records/audit-entry.ts";
import { noteOfGateway } from "#shared/records/site-gateways.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { tunnelPath } from "#shared/protocol/pairing.ts";
import { BadKeys } from "./keys/bad-keys.ts";
import { followKeyChanges, NewestRecords } from "./keys/follow-key-changes.ts";
import { StoreWatch } from "./keys/store-watch.ts";
import { allowCrossOrigin } from "./http/cross-origin.ts";
import { proveCallers, RunningRequests } from "./keys/authenticate.ts";
import { KnownKeys, moveToNewPepper, saltsOf } from "./keys/known-keys.ts";
import { type GatewayConfig, unreachedUrl } from "./config.ts";
import { RequestReader } from "./requests/read-request.ts";
import type { ChangedRecords } from "./fleet/changed-records.ts";
import { followPresence } from "./fleet/follow-presence.ts";
import { MachineRecords } from "./fleet/machine-records.ts";
import { PriceRecords } from "./fleet/price-records.ts";
import { NamedRecords } from "./people/named-records.ts";
import { certificatesOf } from "./operations/site-view.ts";
import { Standings } from "./people/standings.ts";
import { RouteRecords } from "./fleet/route-records.ts";
import { watchSecondConnections } from "./fleet/second-connections.ts";
import { type Certificate, closeServer, listen, readCertificate } from "./http/listen.ts";
import { openLimits } from "./limits/open-limits.ts";
import { HistoryWriter } from "./metrics/write-history.ts";
import { healthRoutes, readiness } from "./operations/health-and-metrics.ts";
import { answerHeaders } from "./openapi/public-headers.ts";
import { publicDocument } from "./openapi/public-document.ts";
import { getReference } from "./openapi/get-reference.ts";
import type { ApiParts } from "./apis/api.ts";
import { faultShapes } from "./apis/apis.ts";
import { mountApis } from "./apis/mount-apis.ts";
import { readingThread, reads } from "./apis/reads.ts";
import { KeptResponses } from "./apis/responses/kept-responses.ts";
import { createServer } from "./server.ts";
import { noteSite } from "./tunnels/pair-machines.ts";
import { probeStreams, refuseMachines, servePackage } from "./tunnels/routes-before-pairing.ts";
import { type BrokerFor, openTunnels } from "./compose-tunnels.ts";
import { EndUserBooks } from "./people/end-users.ts";
import { openAlerts } from "./compose-alerts.ts";
import { openFleet } from "./compose-fleet.ts";
import { openMembers } from "./compose-members.ts";
import { openOperations } from "./compose-operations.ts";
import { composeTraces } from "./compose-traces.ts";

/** Time between two deletions of stored responses that are too old. */
const oldResponsesEveryMs = 600_000;

/** Time to record the last usage at a stop, even when the shutdown deadline has passed. */
const settleAtStopMs = 1_000;

interface GatewayParts {
  readonly config: GatewayConfig;
  readonly broker: Broker;
  /** Makes connections for paired machines, which then reach the broker through this gateway. */
  readonly brokerFor?: BrokerFor | undefined;
  readonly store: OpenedKeyStore;
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly log: Log;
  /** Gets the lines of the requests on the public port; otherwise `log` does. */
  readonly requestLog?: Log | undefined;
}

interface RunningGateway {
  /** The URL of the endpoints on this host, including `/v1`. */
  readonly baseUrl: string;
  /** The URL by which other hosts reach this site, without a path. */
  readonly publicUrl: string | undefined;
  readonly operationsUrl: string;
  /** The URL of the console, as people open it. */
  readonly consoleUrl: string;
}

/**
 * Builds a gateway from its parts and starts it. When the promise resolves, the gateway listens and knows its fleet.
 */
export async function startGateway(parts: GatewayParts): Promise<RunningGateway> {
  const { config, broker, brokerFor, store, lifecycle, log } = parts;
  const { clock } = store;
  const timing = timingAt(config.timeScale, config);
  const closing = { begun: false };
  // Read first, so that a start that fails for their sake has no timer to stop.
  const tls = readCertificate("TRUNKLINE_TLS_", config);
  const operationsTls = readCertificate("TRUNKLINE_OPERATIONS_TLS_", config.operationsTls);

  const gateway = newToken();
  const noted = noteOfGateway(gateway, clock.wall());

  const records = new MachineRecords({ machines: store.machines, timing, clock, log });
  lifecycle.onStop("records of machines", () => records.stop());
  await records.load();
  const modelRoutes = new RouteRecords({ routes: store.routes, machines: records, log });
  await modelRoutes.load();
  const prices = new PriceRecords({ prices: store.prices, currency: config.currency, log });
  await prices.load();
  const running = new RunningRequests();
  const standings = new Standings({ store, running, memberMs: config.memberMs, clock, log });
  await standings.load();
  const alertTargets = new NamedRecords({ store: store.alerts, of: "alert targets", log });
  await alertTargets.load();
  const followed = {
    machine: records.follow,
    route: modelRoutes.follow,
    price: prices.follow,
    alert: alertTargets.follow,
    ...standings.followed,
  };
  const access = { ...(await openAccess(parts, followed, running)), standings };
  const { watch, knownKeys } = access;
  const tellMachines = (): void => fleet.jobs.tellCounts();
  const limited = openLimits(store.state, { gateway: noted, clock, log, kept: config.keptRequests, tellMachines });
  lifecycle.onStop("settlements", () => limited.settlements.stop(AbortSignal.timeout(settleAtStopMs)));
  const history = new HistoryWriter({ history: openHistory(store.state), gateway, clock, log });
  lifecycle.onStop("history", () => history.stop(AbortSignal.timeout(settleAtStopMs)));

  const fleet = openFleet({
    config,
    broker,
    store,
    watch,
    records,
    lifecycle,
    gateway,
    site: limited.site,
    timing,
    log,
  });
  const { roster, meters, jobs, isNameUsed } = fleet;
  const beginTrace = await composeTraces({ config, gateway, lifecycle, clock, log, meter: meters.traces });
  const { bodyBytesMax, trustedProxies } = config;
  const bodyLimit = { bodyBytesMax, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" };
  const server = createServer({
    log,
    faultShapes,
    requestLog: parts.requestLog,
    ...bodyLimit,
    trustedProxies,
    tls,
    webSocketsAt: tunnelPath,
    lifecycle,
    closing,
    connections: config,
    answers: { clientStallMs: timing.clientStallMs },
    clock,
    meter: meters.requests,
    beginTrace,
  });
  allowCrossOrigin(server, { origins: config.corsOrigins, exposedHeaders: Object.keys(answerHeaders) });
  const document = publicDocument(bodyLimit);
  getReference(server, document);
  servePackage(server, { clock, log });
  const { brokerWatch } = meters;
  const keys = { ready: () => watch.look() };
  const draining = (): boolean => lifecycle.draining;
  const backing = { broker, brokerWatch, keys, knownKeys, store: watch, sharing: fleet.sharing };
  const check = () => readiness({ ...backing, clock, draining });
  healthRoutes(server, check);
  probeStreams(server, { clock });
  const forTunnels = { config, broker, store, records, isNameUsed, badKeys: access.badKeys, gateway, lifecycle, log };
  const tunnels =
    brokerFor &&
    (await openTunnels(server, { brokerFor, exposition: meters.exposition, meter: fleet.fleetMeter, ...forTunnels }));
  if (tunnels === undefined) refuseMachines(server);
  const reader = new RequestReader(store.peppers.current.promptSeed, { reads, thread: readingThread });
  lifecycle.onStop("reading thread", () => reader.stop());
  const cacheSaltOf = config.promptCache === "shared" ? undefined : saltsOf(store.peppers);
  const captures = config.capture
    ? new (await import("./capture/captures.ts")).Captures({ ...store, meter: meters.requests, log })
    : undefined;
  lifecycle.onStop("captures", async () => void (await captures?.written));
  const apiParts: ApiParts = {
    ...fleet,
    ...bodyLimit,
    limited,
    keepsRequests: config.keptRequests.max > 0,
    meter: meters.answers,
    continuations: config.continue ? { heldBytes: 0 } : undefined,
    placements: fleet.placements,
    modelRoutes,
    prices,
    reader,
    endUsers: new EndUserBooks({ endUsers: openEndUsers(store.state), peppers: store.peppers, clock }),
    settlements: limited.settlements,
    captures,
    history,
    external: records.external,
    responses: new KeptResponses({
      stored: store.responses,
      terms: config.storedResponses,
      ofAll: config.storeResponses,
      peppers: store.peppers,
      log,
    }),
    images: new ImageFetcher({ hosts: config.imageHosts, clock }),
    mediaPrices: config.mediaTokens,
    cacheSaltOf,
    timing,
    clock,
    log,
  };
  const dropOld = (): void => {
    for (const each of [store.responses, store.captures]) void each.removeExpired().catch(() => undefined);
  };
  dropOld();
  const lookAtOld = clock.every(oldResponsesEveryMs, dropOld);
  lifecycle.onStop("old responses", () => lookAtOld.cancel());
  mountApis(server, { prove: (scope) => proveCallers(scope, access) }, apiParts);
  const mountPlayground = (own: FastifyInstance, prove: (scope: FastifyInstance) => void): void =>
    mountApis(own, { prove, below: "/console" }, apiParts);
  openMembers(server, { config, store, access, fleet, modelRoutes, mountPlayground, log });
  // The ports are known once the gateway listens, and no request comes before.
  const reached = { baseUrl: "", consoleUrl: "" };
  const alertSender = new AlertSender({ hosts: config.alertHosts, peppers: store.peppers, clock });
  void moveAlerts(store, log);
  const operations = openOperations({
    config,
    alertSender,
    store,
    access,
    fleet,
    records,
    modelRoutes,
    history,
    settlements: limited.settlements,
    broker,
    whyClosed: tunnels && ((publicKey) => tunnels.whyClosed(publicKey)),
    check,
    addresses: () => reached,
    mountPlayground,
    gateway,
    publicTls: tls,
    tls: operationsTls,
    lifecycle,
    log,
  });
  lifecycle.onStop("gateway", async (deadline) => {
    const cut = (): void => {
      jobs.cancelAll(new Fault("shutting_down", { message: "This gateway shuts down and could not finish in time." }));
    };
    deadline.addEventListener("abort", cut, { once: true });
    // By then load balancers know that this gateway is not ready, and send no more requests.
    const graceMs = config.graceMs ?? timing.readinessGraceMs;
    await sleep(clock, graceMs / 2, deadline).catch(() => undefined);
    // The embedded broker ends with this process, so its machines have nowhere to go.
    const moving = config.natsUrl === undefined ? undefined : tunnels?.move(graceMs / 2, deadline);
    await Promise.allSettled([sleep(clock, graceMs / 2, deadline), moving]);
    closing.begun = true;
    await closeServer(server, { deadline, clock, webSockets: tunnels });
    // Answers without a client are counted up to here.
    cut();
  });

  const seconds = await watchSecondConnections({ config, broker, roster, records, lifecycle, timing, clock, log });
  const isDrained = (machine: string): boolean => records.get(machine)?.cordon?.drains === true;
  const onDraining = (machine: string): void => {
    jobs
      .handOver(machine)
      .catch((error: unknown) => log.error({ err: error, machine }, "answers were not handed over"));
  };
  await followPresence({ ...fleet, broker, isDrained, onDraining, seconds, timing, clock, log });
  await broker.flush();
  const { host, operationsHost } = config;
  const port = await listen(server, { host, port: config.port, prefix: "TRUNKLINE_" });
  const operationsAt = { host: operationsHost, port: config.operationsPort, prefix: "TRUNKLINE_OPERATIONS_" } as const;
  const operationsPort = await listen(operations, operationsAt);
  limited.begin();
  const baseUrl = `${localOrigin(tls, host, port)}/v1`;
  const operationsUrl = localOrigin(operationsTls, operationsHost, operationsPort);
  const { publicUrl, consoleUrl } = config;
  reached.consoleUrl = consoleUrl ?? `${operationsUrl}/console`;
  reached.baseUrl = publicUrl === undefined ? baseUrl : `${publicUrl}/v1`;
  const isShared = store.state.kind === "redis";
  const takesMachines = tunnels !== undefined;
  const isProxied = trustedProxies.length > 0;
  await noteSite({
    machines: store.machines,
    publicUrl,
    here: new URL(baseUrl),
    isShared,
    isProxied,
    takesMachines,
    gateway: noted,
  });
  // It stops first, so that the other gateways have its goodbye before it drains.
  openAlerts({
    ...fleet,
    config,
    store,
    broker,
    records,
    standings,
    history,
    certificates: () => certificatesOf({ config, publicTls: tls, tls: operationsTls }),
    targets: alertTargets,
    sender: alertSender,
    gateway,
    lifecycle,
    timing,
    clock,
    log,
  });
  log.info({ baseUrl, operationsUrl, publicUrl }, "gateway listens");
  const unreached = unreachedUrl(publicUrl, { host, port });
  if (unreached !== undefined) log.warn(unreached);
  return { baseUrl, operationsUrl, publicUrl, consoleUrl: reached.consoleUrl };
}

/** Opens the parts that check keys, and follows the changes of keys and of the other records. */
async function openAccess(
  { config, store, lifecycle, log }: GatewayParts,
  records: { readonly [Kind in RecordKind]?: ChangedRecords },
  running: RunningRequests,
) {
  const { keys, peppers, clock } = store;
  const newest = new NewestRecords({ keys, log });
  const knownKeys = new KnownKeys({
    keys: newest,
    peppers,
    clock,
    awayMs: config.keysAwayMs,
    onOldPepper: (token, { record }) => void moveToNewPepper({ token, record }, { keys, peppers, clock, log }),
  });
  const changes = await store.openChanges();
  lifecycle.onStop("key changes", () => changes.close());
  followKeyChanges({ changes, keys, knownKeys, newest, running, records, log });
  const watch = new StoreWatch({ keys, judged: newest, clock, log });
  lifecycle.onStop("store watch", () => watch.stop());
  await watch.look().catch(() => undefined);
  return { knownKeys, newest, badKeys: new BadKeys(clock), running, watch };
}

/** Returns the URL of a port on this host. The loopback address stands for a host that means all addresses. */
function localOrigin(certificate: Certificate | undefined, host: string, port: number): string {
  const scheme = certificate === undefined ? "http" : "https";
  if (host === "0.0.0.0" || host === "::") return `${scheme}://127.0.0.1:${port}`;
  return `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
