import type { FastifyInstance } from "fastify";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import type { Readiness } from "./readiness.ts";

/**
 * `healthz`: this process runs. `readyz`: it can serve. Neither asks a machine, so that a balancer does not take every
 * gateway out when the machines are away; `GET /v1/models` with a key is the check that does.
 */
export function healthRoutes(server: FastifyInstance, check: () => Promise<Readiness>): void {
  server.get("/healthz", async () => ({ status: "ok" }));
  server.get("/readyz", async (_request, reply) => {
    const readiness = await check();
    return reply.code(readiness.ready ? 200 : 503).send(readiness);
  });
  for (const url of ["/healthz", "/readyz"]) refuseOtherMethods(server, url, ["GET", "HEAD"]);
}
