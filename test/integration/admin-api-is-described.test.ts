import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import { adminApi } from "#shared/admin/admin-api.ts";
import type { AdminOperation } from "#shared/admin/operation.ts";
import { adminPrefix } from "../../services/gateway/operations/admin-api.ts";
import { signedIn } from "#shared/records/change-person.ts";
import type { MachineStore } from "#shared/records/machine-record.ts";
import { pairOnStore, publicUrl } from "../harness/pair-on-store.ts";
import { sqlitePlace } from "../contract/key-store-place.ts";
import { AdminOnStore, operations } from "../unit/gateway/operations/admin-on-a-store.ts";

const medium = z.strictObject({ schema: z.looseObject({}), example: z.looseObject({}).optional() });
const json = z.strictObject({ "application/json": medium });
const jsonOrLines = z.union([
  json,
  z.strictObject({ "application/x-ndjson": medium }),
  z.strictObject({ "text/event-stream": medium }),
]);
const described = z.strictObject({
  operationId: z.string(),
  summary: z.string().min(1),
  security: z.tuple([]).optional(),
  parameters: z.array(
    z.strictObject({
      name: z.string(),
      in: z.enum(["path", "query"]),
      required: z.boolean(),
      description: z.string().optional(),
      schema: z.looseObject({}),
    }),
  ),
  requestBody: z.strictObject({ required: z.boolean(), content: json }).optional(),
  responses: z.record(z.string().regex(/^\d{3}$/), z.strictObject({ description: z.string(), content: jsonOrLines })),
});
/** As much of OpenAPI 3.1 as the document uses. */
const openApi = z.strictObject({
  openapi: z.literal("3.1.0"),
  info: z.strictObject({ title: z.string(), version: z.string(), description: z.string() }),
  servers: z.tuple([z.strictObject({ url: z.literal(adminPrefix) })]),
  security: z.tuple([z.strictObject({ adminKey: z.tuple([]) })]),
  paths: z.record(
    z.string().startsWith("/"),
    z.record(z.enum(["get", "post", "put", "patch", "delete"]), described.optional()),
  ),
  components: z.strictObject({
    securitySchemes: z.strictObject({
      adminKey: z.strictObject({ type: z.literal("http"), scheme: z.literal("bearer"), description: z.string() }),
    }),
    schemas: z.record(z.string(), z.looseObject({})),
  }),
});

let api: AdminOnStore;
let machines: MachineStore;
let document: z.infer<typeof openApi>;
let text: string;
beforeEach(async () => {
  const place = await sqlitePlace();
  machines = await place.openMachines();
  api = new AdminOnStore(await place.open(), machines, await place.openNamed());
  const response = await api.server.inject({ method: "GET", url: `${adminPrefix}/openapi.json` });
  text = response.body;
  document = openApi.parse(response.json());
});

function eachDescribed() {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      operation === undefined ? [] : [{ route: `${method.toUpperCase()} ${path}`, operation }],
    ),
  );
}

test("every route that is mounted is described, and every one that is described is mounted", async () => {
  const served: string[] = [];
  const mounted = api.mounted.filter(({ url }) => url.startsWith(adminPrefix));
  for (const { url, method } of mounted) {
    for (const each of [method].flat().filter((name) => name !== "HEAD")) {
      const response = await api.server.inject({ method: each as "GET", url: url.replace(":id", "0aB1cD2eF3gH") });
      const path = url.slice(adminPrefix.length).replaceAll(/:(\w+)/g, "{$1}");
      if (response.statusCode !== 405) served.push(`${each} ${path}`);
    }
  }
  expect(served.sort()).toEqual(
    eachDescribed()
      .map(({ route }) => route)
      .sort(),
  );
  expect(served).toHaveLength(operations.length);
});

test("every operation has a name of its own, its answer, and its refusals as errors", () => {
  const all = eachDescribed();
  expect(new Set(all.map(({ operation }) => operation.operationId)).size).toBe(all.length);
  for (const { operation, route } of all) {
    const statuses = Object.keys(operation.responses);
    const isOpen = operation.security !== undefined;
    expect(statuses.filter((status) => status.startsWith("2"))).toHaveLength(1);
    for (const status of ["400", "503", ...(isOpen ? [] : ["401", "403"])]) expect(statuses).toContain(status);
    if (route.includes("{id}")) expect(statuses).toContain("404");
    // A body that arrives too slowly.
    if (operation.requestBody !== undefined) expect(statuses, route).toContain("408");
    for (const [status, { content }] of Object.entries(operation.responses)) {
      if (status.startsWith("2")) continue;
      expect(json.parse(content)["application/json"].schema).toEqual({ $ref: "#/components/schemas/Error" });
    }
  }
});

test("every reference leads somewhere, and what is optional or has a default is not required", () => {
  const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, to = ""]) =>
    to.replace("#/components/schemas/", ""),
  );
  expect(references.length).toBeGreaterThan(0);
  for (const name of references) expect(Object.keys(document.components.schemas)).toContain(name);
  const issue = document.paths["/keys"]?.post?.requestBody?.content["application/json"].schema;
  expect(issue).toMatchObject({
    required: ["name"],
    additionalProperties: false,
    properties: {
      ttl: { type: "string", default: "90d" },
      kind: { default: "model", enum: ["model", "admin", "viewer"] },
    },
  });
  const page = document.paths["/keys"]?.get?.parameters;
  expect(page).toMatchObject([
    { name: "state", in: "query", required: false },
    { name: "team", required: false },
    { name: "limit", required: false, schema: { type: "integer", minimum: 1, maximum: 1_000, default: 100 } },
    { name: "after", required: false },
  ]);
  expect(document.paths["/keys/{id}"]?.get?.parameters).toMatchObject([{ name: "id", in: "path", required: true }]);
});

test("nothing that may be sent is called read-only, and answers may get further fields", () => {
  expect(text).not.toContain('"readOnly"');
  expect(JSON.stringify(document.components.schemas)).not.toContain('"additionalProperties":false');
  const bodies = eachDescribed().flatMap(({ operation }) => operation.requestBody ?? []);
  expect(bodies.map(({ required }) => required)).toEqual(
    Array.from({ length: 20 }, (_, place) => ![1, 2, 3, 5, 7, 13, 15, 16, 17, 19].includes(place)),
  );
});

test("the examples are requests that the API takes", async () => {
  const admin = (await api.issue({ kind: "admin" })).token.reveal();
  const { record } = await api.issue();
  const { named, keys, clock } = api;
  const person = await signedIn(
    { issuer: "https://id", subject: "1", called: "Anna", claims: [] },
    { ...named, keys, clock, actor: { by: "OpenID" } },
  );
  const withExample = Object.values<AdminOperation>(adminApi).filter(({ example }) => example !== undefined);
  expect(withExample).toHaveLength(19);
  await machines.noteSite({ publicUrl, gateway: "abc 0.3.0 attic" });
  await pairOnStore("shed", { machines, clock: api.clock });
  for (const { method, path, status, example } of withExample) {
    const machine = path.endsWith("/rename") ? "shed" : "attic";
    const at = path
      .replace("{id}", record.id)
      .replace("{machine}", machine)
      .replace("{route}", "gpt-4o")
      .replace("{model}", "llama3")
      .replace("{team}", "research")
      .replace("{person}", person.name);
    const told = await api.ask(method, at, { key: admin, body: example });
    expect(told.status).toBe(status);
  }
});

test("the examples hold nothing that is a key", () => {
  for (const word of text.split(/[^0-9A-Za-z_]+/)) expect(parseKeyToken(word).outcome).toBe("malformed");
});
