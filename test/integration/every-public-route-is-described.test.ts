import type { FastifyInstance, RouteOptions } from "fastify";
import { expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { healthRoutes } from "../../services/gateway/operations/health-and-metrics.ts";
import { publicDocument } from "../../services/gateway/openapi/public-document.ts";
import {
  countTokens,
  getModel,
  getModels,
  inferenceRoutes,
  ollamaPaths,
  barePaths,
  paths,
} from "../../services/gateway/apis/endpoints.ts";
import { storedResponses } from "../../services/gateway/apis/responses/stored-endpoints.ts";
import { ollamaActions, ollamaModels, refuseOllamaActions } from "../../services/gateway/apis/ollama/ollama-routes.ts";
import { getReference } from "../../services/gateway/openapi/get-reference.ts";
import { createServer } from "../../services/gateway/server.ts";

const limit = { bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" };
const document = publicDocument(limit);

/** Handlers are not called here, so they need no dependencies. */
const nothing = {} as never;
const mountV1 = (v1: FastifyInstance): void => {
  for (const mount of [getModels, getModel, countTokens, storedResponses]) mount(v1, nothing);
  inferenceRoutes(v1, paths, nothing);
};
const mountOllama = (api: FastifyInstance): void => {
  ollamaModels(api, nothing);
  refuseOllamaActions(api);
  inferenceRoutes(api, ollamaPaths, nothing);
};

/** These routes only name the command to use in their place. */
const refused = new Set(ollamaActions.map(([method, path]) => `${method} /api${path.replace(":digest", "{digest}")}`));

test("every route that is mounted is described, and every one that is described is mounted", async () => {
  const routes: RouteOptions[] = [];
  const log = createLog({ level: "silent", name: "gateway", write: () => undefined });
  const server = createServer({ log, ...limit });
  server.addHook("onRoute", (route) => void routes.push(route));
  healthRoutes(server, async () => ({ ready: true, checks: { serving: true, broker: true, keys: true }, reasons: [] }));
  getReference(server, document);
  void server.register(async (v1) => mountV1(v1), { prefix: "/v1" });
  void server.register(async (api) => mountOllama(api), { prefix: "/api" });
  void server.register(async (bare) => inferenceRoutes(bare, barePaths, nothing));
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
