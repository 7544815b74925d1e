import type { FastifyInstance } from "fastify";
import type { FleetView } from "./fleet-view.ts";
import { adminApi } from "./admin-api.ts";
import { serveOperation } from "./serve-operation.ts";

/**
 * Mounts the routes that list the machines as this gateway sees them and explain where a request for a model would go.
 */
export function mountFleet(
  server: FastifyInstance,
  { view }: { readonly view: Pick<FleetView, "machines" | "route"> },
): void {
  serveOperation(server, adminApi.listMachines, async () => view.machines());
  serveOperation(server, adminApi.explainRoute, ({ query }) => {
    const { model: modelId, kind, tools, vision, prompt_tokens: promptTokens } = query;
    const capability = kind === "embed" ? "embedding" : "completion";
    const imageParam = vision ? "messages" : undefined;
    return view.route({ kind, modelId, needs: { capability, tools, imageParam, promptTokens } });
  });
}
