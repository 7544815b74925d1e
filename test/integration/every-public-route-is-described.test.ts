import { globSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance, RouteOptions } from "fastify";
import { expect, test } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { healthRoutes } from "../../services/gateway/operations/health-and-metrics.ts";
import { publicDocument } from "../../services/gateway/openapi/public-document.ts";
import { createServer } from "../../services/gateway/server.ts";

const limit = { bodyBytesMax: 1_024, bodyLimitName: "bodyBytesMax" };
const folder = join(import.meta.dirname, "../../services/gateway/routes");
const document = publicDocument(limit);

type Mount = (server: FastifyInstance, parts: object) => void;

/** The files of routes are named for their methods, and each mounts its own. */
async function eachMount(): Promise<{ file: string; mount: Mount }[]> {
  const files = globSync("{get,post,put,patch,delete}-*.ts", { cwd: folder }).toSorted();
  return Promise.all(
    files.map(async (file) => {
      const exported = Object.values((await import(join(folder, file))) as Record<string, unknown>);
      const mount = exported.find((each) => typeof each === "function");
      if (mount === undefined) throw new Error(`${file} mounts nothing`);
      return { file, mount: mount as Mount };
    }),
  );
}

test("every route that is mounted is described, and every one that is described is mounted", async () => {
  const routes: RouteOptions[] = [];
  const log = createLog({ level: "silent", name: "gateway", write: () => undefined });
  const server = createServer({ log, ...limit, draining: () => false });
  server.addHook("onRoute", (route) => void routes.push(route));
  const isUnderV1 = (file: string): boolean => file !== "get-reference.ts";
  const mounts = await eachMount();
  expect(mounts.length).toBeGreaterThan(5);
  healthRoutes(server, async () => ({ ready: true, checks: { serving: true, broker: true, keys: true }, reasons: [] }));
  for (const { file, mount } of mounts) if (!isUnderV1(file)) mount(server, document);
  void server.register(
    async (v1) => {
      for (const { file, mount } of mounts) if (isUnderV1(file)) mount(v1, {});
    },
    { prefix: "/v1" },
  );
  await server.ready();
  // What a URL answers to all its other methods is not of its own.
  const own = routes.filter(({ method }) => !Array.isArray(method) || method.length === 1);
  const mounted = own
    .flatMap(({ method, url }) => [method].flat().map((each) => `${each} ${url.replace(/\*$/, "{id}")}`))
    // The root leads people to the page, and the page has files of its own.
    .filter((route) => !route.startsWith("HEAD ") && route !== "GET /" && !route.startsWith("GET /docs/"));
  await server.close();
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(new Set(mounted)).toEqual(new Set(described));
});
