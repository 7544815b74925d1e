import { hash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { Broker } from "#shared/broker/broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import { bearerText } from "../keys/authenticate.ts";
import type { PlacementSharing } from "../routing/share-placements.ts";
import type { KnownKeys } from "../keys/known-keys.ts";
import type { StoreWatch } from "../keys/store-watch.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { type BrokerWatch, probe, probeWithinMs } from "../metrics/backing-meters.ts";
import type { Exposition } from "../metrics/exposition.ts";

/**
 * Mounts the health routes. `healthz`: this process runs. `readyz`: it can serve requests. Neither sends a request to a
 * machine, so a balancer keeps all gateways when the machines are offline. `GET /v1/models` with a key is the check
 * that includes the machines.
 */
export function healthRoutes(server: FastifyInstance, check: () => Promise<Readiness>): void {
  server.get("/healthz", async () => ({ status: "ok" }));
  // Benchmarks such as guidellm look at `/health` before they begin.
  for (const url of ["/readyz", "/health"]) {
    server.get(url, async (_request, reply) => {
      const answer = await check();
      return reply.code(answer.ready ? 200 : 503).send(answer);
    });
  }
  for (const url of ["/healthz", "/readyz", "/health"]) refuseOtherMethods(server, url, ["GET", "HEAD"]);
}

export interface Readiness {
  readonly ready: boolean;
  readonly checks: Readonly<Record<"serving" | "broker" | "keys", boolean>>;
  /** The reasons why the gateway is not ready, and problems that do not stop it from serving. */
  readonly reasons: readonly string[];
}

/**
 * Checks whether this gateway can serve requests: it is not shutting down, the broker is connected, and the key store
 * answers. A key store that is away only for a short time, while known keys still work, does not fail the check: all
 * gateways may lose their store at once, and none should be taken out for that. An emptied store fails the check: the
 * gateway refuses every key that it has not seen.
 * The answer comes in time even when a check hangs, since a balancer that waits for the answer does not turn away.
 */
export async function readiness(parts: {
  readonly broker: Pick<Broker, "connected">;
  readonly brokerWatch: Pick<BrokerWatch, "trouble">;
  readonly keys: Pick<KeyStore, "ready">;
  readonly knownKeys: Pick<KnownKeys, "usableWhileStoreAway">;
  readonly store?: Pick<StoreWatch, "emptied" | "faults"> | undefined;
  readonly sharing?: Pick<PlacementSharing, "remark"> | undefined;
  readonly clock: Clock;
  readonly draining: () => boolean;
}): Promise<Readiness> {
  const { keys, knownKeys, store, clock } = parts;
  const answered = await probe(clock, () => keys.ready());
  const checks = {
    serving: !parts.draining(),
    broker: parts.broker.connected,
    keys: (typeof answered === "number" || knownKeys.usableWhileStoreAway) && store?.emptied !== true,
  };
  const why: Readonly<Record<keyof typeof checks, string>> = {
    serving: "this gateway shuts down",
    broker: parts.brokerWatch.trouble ?? "the broker is away",
    keys: `the key store ${answered === "late" ? `does not answer within ${probeWithinMs} ms` : "cannot be asked"}, and known keys do not go on without it (TRUNKLINE_KEYS_AWAY_MS)`,
  };
  const failed = (["serving", "broker", "keys"] as const).filter((check) => !checks[check]);
  const reasons = failed.filter((check) => check !== "keys" || store?.emptied !== true).map((check) => why[check]);
  const { remark } = parts.sharing ?? {};
  const beside = [...(store?.faults ?? []), ...(remark === undefined ? [] : [remark])];
  return { ready: failed.length === 0, checks, reasons: [...reasons, ...beside] };
}

/**
 * Mounts the metrics of this gateway in Prometheus format; `docs/metrics.md` lists them. When a token is configured,
 * requests without it are refused.
 */
export function metricsRoute(server: FastifyInstance, meters: Pick<Exposition, "show">, token?: string): void {
  server.get("/metrics", async (request, reply) => {
    if (token !== undefined) assertToken(request.headers.authorization, token);
    const { type, text } = await meters.show(request.headers.accept);
    return reply.type(type).send(text);
  });
  refuseOtherMethods(server, "/metrics", ["GET", "HEAD"]);
}

function assertToken(authorization: string | undefined, token: string): void {
  const sent = bearerText(authorization);
  if (sent !== undefined && timingSafeEqual(digestOf(sent), digestOf(token))) return;
  throw new Fault("key_invalid", {
    message:
      "The metrics take the token in TRUNKLINE_METRICS_TOKEN. Send it as a header: Authorization: Bearer <token>.",
  });
}

/**
 * Returns a digest for comparing tokens, so that the time of a comparison does not show how much of a token matches.
 */
function digestOf(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
