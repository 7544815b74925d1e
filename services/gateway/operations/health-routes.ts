import type { FastifyInstance } from "fastify";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import type { Readiness } from "./readiness.ts";

/**
 * Mounts the health routes. `healthz`: this process runs. `readyz`: it can serve requests. Neither sends a request to a
 * machine, so a balancer keeps all gateways when the machines are offline. `GET /v1/models` with a key is the check
 * that includes the machines.
 */
export function healthRoutes(server: FastifyInstance, check: () => Promise<Readiness>): void {
  server.get("/healthz", async () => ({ status: "ok" }));
  server.get("/readyz", async (_request, reply) => {
    const readiness = await check();
    return reply.code(readiness.ready ? 200 : 503).send(readiness);
  });
  for (const url of ["/healthz", "/readyz"]) refuseOtherMethods(server, url, ["GET", "HEAD"]);
}
