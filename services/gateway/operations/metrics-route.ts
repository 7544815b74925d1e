import type { FastifyInstance } from "fastify";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import type { GatewayMeters } from "../meters/gateway-meters.ts";

/** The metrics of this gateway, for Prometheus and whoever reads the same; `infra/metrics.md` lists them. */
export function metricsRoute(server: FastifyInstance, meters: Pick<GatewayMeters, "show">): void {
  server.get("/metrics", async (request, reply) => {
    const { type, text } = await meters.show(request.headers.accept);
    return reply.type(type).send(text);
  });
  refuseOtherMethods(server, "/metrics", ["GET", "HEAD"]);
}
