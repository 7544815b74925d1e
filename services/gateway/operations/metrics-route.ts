import { hash, timingSafeEqual } from "node:crypto";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { bearerText } from "../access/bearer-text.ts";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import type { GatewayMeters } from "../meters/gateway-meters.ts";

/**
 * Mounts the metrics of this gateway in Prometheus format; `infra/metrics.md` lists them. When a token is configured,
 * requests without it are refused.
 */
export function metricsRoute(server: FastifyInstance, meters: Pick<GatewayMeters, "show">, token?: string): void {
  server.get("/metrics", async (request, reply) => {
    if (token !== undefined) insistOnToken(request.headers.authorization, token);
    const { type, text } = await meters.show(request.headers.accept);
    return reply.type(type).send(text);
  });
  refuseOtherMethods(server, "/metrics", ["GET", "HEAD"]);
}

function insistOnToken(authorization: string | undefined, token: string): void {
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
