import type { RouteOptions } from "fastify";
import { expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { healthRoutes } from "../../services/gateway/operations/health-and-metrics.ts";
import { publicDocument } from "../../services/gateway/openapi/public-document.ts";
import { mountApis } from "../../services/gateway/apis/mount-apis.ts";
import type { ApiParts } from "../../services/gateway/apis/api.ts";
import { ollamaActions } from "../../services/gateway/apis/ollama/ollama-routes.ts";
import { getReference } from "../../services/gateway/openapi/get-reference.ts";
import { createServer } from "../../services/gateway/server.ts";

const limit = { bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" };
const document = publicDocument(limit);

/** Handlers are not called here, so they need no dependencies. */
const nothing = { limited: {}, clock: {} } as ApiParts;

/** These routes only name the command to use in their place. */
const refused = new Set(ollamaActions.map(([method, path]) => `${method} /api${path.replace(":digest", "{digest}")}`));

test("every route that is mounted is described, and every one that is described is mounted", async () => {
  const routes: RouteOptions[] = [];
  const log = createLog({ level: "silent", name: "gateway", write: () => undefined });
  const server = createServer({ log, ...limit });
  server.addHook("onRoute", (route) => void routes.push(route));
  healthRoutes(server, async () => ({ ready: true, checks: { serving: true, broker: true, keys: true }, reasons: [] }));
  getReference(server, document);
  mountApis(server, { prove: () => undefined }, nothing);
  await server.ready();
  // The answer of a URL to all its other methods is no route of its own.
  const own = routes.filter(({ method }) => !Array.isArray(method) || method.length === 1);
  const mounted = own
    // The paths without `/v1` are told in the description of the other.
    .filter(({ url }) => !url.endsWith("/rerank") || url === "/v1/rerank")
    .flatMap(({ method, url }) =>
      [method].flat().map((each) => `${each} ${url.replace(/\*$/, "{id}").replace(/:(\w+)/g, "{$1}")}`),
    )
    // The root leads people to the page, and the page has files of its own.
    .filter((route) => !refused.has(route))
    .filter((route) => !route.startsWith("HEAD ") && route !== "GET /" && !route.startsWith("GET /docs/"));
  await server.close();
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(new Set(mounted)).toEqual(new Set(described));
});
