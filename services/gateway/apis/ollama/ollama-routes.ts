import type { FastifyInstance, onRequestHookHandler } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { readJsonObject, readShape } from "../../http/read-json.ts";
import { callerOf } from "../../keys/authenticate.ts";
import type { ApiParts } from "../api.ts";
import { dropNulls, invalidValue } from "../../requests/request-fields.ts";
import { findListed, listModels, withoutLatest } from "../../requests/resolve-model.ts";
import { ollamaLoaded, ollamaShow, ollamaTags, ollamaVersion } from "./ollama-models.ts";
import { ollamaShowRequest } from "./ollama-schema.ts";

/** Serves the routes of Ollama's API that tell of models, within the scopes of the calling key, and refuses the others. */
export function ollamaRoutes(server: FastifyInstance, { models, ranking, modelRoutes }: ApiParts): void {
  server.get("/version", async () => ({ version: ollamaVersion }));
  server.get("/tags", async (request) => {
    const { key } = callerOf(request);
    return ollamaTags(listModels(await models.list(key), key, modelRoutes.table));
  });
  server.get("/ps", async (request) => {
    const { key } = callerOf(request);
    const listing = await models.list(key);
    return ollamaLoaded(listModels(listing, key, modelRoutes.table), listing);
  });
  server.post<{ Body: Buffer | undefined }>("/show", { onRequest: takeJsonByHabit }, async (request) => {
    const { key } = callerOf(request);
    const input = readJsonObject(request.body);
    dropNulls(input);
    const { value } = readShape(ollamaShowRequest, input);
    const asked = value.model || value.name;
    if (!asked) throw invalidValue("model", "'model' must name a model.");
    const name = withoutLatest(asked, key, modelRoutes.table);
    return ollamaShow(await findListed(name, key, { models, ranking, routes: modelRoutes.table }));
  });
  for (const [method, url, message] of ollamaActions) {
    // Before a body is read.
    const refuse = async (): Promise<never> => {
      throw new Fault("insufficient_permissions", { message });
    };
    server.route({ method, url, onRequest: refuse, handler: refuse });
  }
}

/** Actions on the models of machines, by their routes, and the command by which an operator does the same. */
export const ollamaActions: readonly (readonly [method: "POST" | "DELETE", path: string, remedy: string])[] = [
  ["POST", "/pull", "A key pulls no model. The operator does: trunkline models pull <model>."],
  ["DELETE", "/delete", "A key removes no model. The operator does: trunkline models rm <model> --machine <machine>."],
  ["POST", "/copy", "A key copies no model. A route gives a model a second name: trunkline routes set <name> <model>."],
  ["POST", "/create", "A key makes no model. Make it on the machine: ollama create <name>."],
  ["POST", "/push", "A key publishes no model. Do it on the machine: ollama push <name>."],
  ["POST", "/blobs/:digest", "A key uploads no model. Make it on the machine: ollama create <name>."],
];

/** Media types of JSON that its sender calls something else: `curl -d`, as in Ollama's examples, calls it a form. */
const mistaken = /^(?:application\/x-www-form-urlencoded|text\/plain)\s*(?:;|$)/i;

/** Takes a body as JSON, like Ollama does, where the client names another usual type or none. */
export const takeJsonByHabit: onRequestHookHandler = ({ raw: { headers } }, _reply, done) => {
  if (mistaken.test(headers["content-type"] ?? "text/plain")) headers["content-type"] = "application/json";
  done();
};
