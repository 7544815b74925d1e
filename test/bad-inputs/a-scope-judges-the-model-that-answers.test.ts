import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Endpoint, refusalOf } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";

const folder = folderOfTests();
let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess({ stateDir: folder })));
afterAll(() => gateway?.[Symbol.asyncDispose]());

const holding = async (...scopes: string[]): Promise<Endpoint> => (await gateway.issue({ scopes })).endpoint;
const post = (endpoint: Endpoint, path: string, fields: object): Promise<Response> =>
  fetch(`${endpoint.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${endpoint.key}`, "content-type": "application/json" },
    body: JSON.stringify(fields),
  });

/** Every way to name a model, and a model that the demonstration answers there. */
const ways: readonly [string, string, (endpoint: Endpoint, model: string) => Promise<Response>][] = [
  ["a chat", "scripted", (endpoint, model) => endpoint.chat({ model, says: "/script tokens=1" })],
  ["a stream", "scripted", (endpoint, model) => endpoint.chat({ model, says: "/script tokens=1", stream: true })],
  ["a response", "scripted", (endpoint, model) => post(endpoint, "/responses", { model, input: "/script tokens=1" })],
  [
    "a completion",
    "scripted",
    (endpoint, model) => post(endpoint, "/completions", { model, prompt: "/script tokens=1" }),
  ],
  ["an embedding", "scripted:embed", (endpoint, model) => endpoint.embed({ model, input: "Hi" })],
  ["GET /v1/models/{id}", "scripted", (endpoint, model) => endpoint.get(`/models/${model}`)],
];

describe.each(ways)("%s", (way, model, ask) => {
  test(`${way} with the scope *:latest does not reach an untagged model through its alias`, async () => {
    expect(await refusalOf(ask(await holding("*:latest"), `${model}:latest`))).toMatchObject({
      status: 404,
      code: "model_not_found",
    });
  });

  test(`${way} with a scope that allows the untagged model too reaches it through its alias`, async () => {
    const response = await ask(await holding(`${model}*`), `${model}:latest`);
    expect(response.status).toBe(200);
    await response.text();
  });
});
