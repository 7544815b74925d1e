import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { type AdminApi, adminApi } from "#shared/admin/admin-api.ts";
import { atGateway, type Input, nothing, type AdminOperation, reads, type AdminSite } from "#shared/admin/operation.ts";
import type { FaultCode } from "#shared/fault/fault.ts";
import { errorLine } from "#shared/protocol/model.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import {
  answered,
  type Json,
  jsonSchema,
  namedSchemas,
  parametersIn,
  refTo,
  sentExactly,
} from "../openapi/json-schemas.ts";
import { byStatus, faultsOf, openAiStatus, refusedWith } from "../openapi/public-faults.ts";
import { gatewayHandles } from "./gateway-operations.ts";
import { proveAdmins } from "./operations-access.ts";
import { answering, type AdminParts, type Handle, routeUrl, serveOperation } from "./serve-operation.ts";

export const adminPrefix = "/admin/v1";

/**
 * The operation that returns this API's OpenAPI document. The document holds no secret, so it is readable without a
 * key.
 */
export const describeApi = atGateway({
  ...reads,
  path: "/openapi.json",
  summary: "This document",
  answer: z.looseObject({ openapi: z.string() }),
});
let document: ReturnType<typeof openApiDocument> | undefined;

function handleOf(name: keyof AdminApi): Handle {
  const operation: AdminApi[keyof AdminApi] = adminApi[name];
  if (!("run" in operation)) return gatewayHandles[name as keyof typeof gatewayHandles];
  const known: AdminOperation & { run(input: Input, site: AdminSite): Promise<unknown> } = operation;
  return answering(known, (input, site) => known.run(input, site));
}

/**
 * Mounts everything under `/admin/v1`, for holders of admin keys: keys, models, machines and routes, as in the command line.
 */
export function adminRoutes(server: FastifyInstance, parts: AdminParts): void {
  void server.register(
    async (admin) => {
      admin.addHook("onRequest", async (_request, reply) => void reply.header("cache-control", "no-store"));
      const handle: Handle = async (_request, reply) => reply.send((document ??= openApiDocument()));
      serveOperation(admin, describeApi, { handle, parts });
      void admin.register(async (proven) => {
        proveAdmins(proven, { ...parts, keys: parts.newest ?? parts.keys });
        for (const name of Object.keys(adminApi) as (keyof AdminApi)[])
          serveOperation(proven, adminApi[name], { handle: handleOf(name), parts });
      });
      for (const [path, methods] of methodsByPath()) refuseOtherMethods(admin, routeUrl(path), methods);
    },
    { prefix: adminPrefix },
  );
}

/** Returns the methods of each path. `GET` also allows `HEAD`. */
function methodsByPath(): ReadonlyMap<string, readonly string[]> {
  const methods = new Map<string, string[]>();
  for (const { path, method } of [describeApi, ...Object.values(adminApi)]) {
    methods.getOrInsertComputed(path, () => []).push(...(method === "GET" ? ["GET", "HEAD"] : [method]));
  }
  return methods;
}

export const errorBody = z.strictObject({ error: z.strictObject(errorLine.shape.error.shape) });

const { listModels, listMachines, listMachineRecords, readLog, readUsage, listRequests } = adminApi;

/** The schemas that the document names. Others stand where they are used. */
const components: Readonly<Record<string, z.ZodType>> = {
  Key: adminApi.showKey.answer,
  ChangedKey: adminApi.changeKey.answer,
  IssuedKey: adminApi.issueKey.answer,
  KeyList: adminApi.listKeys.answer,
  RevokedKey: adminApi.revokeKey.answer,
  AuditEntry: readLog.answer.shape.data.element,
  AuditEntryList: readLog.answer,
  UsageRow: readUsage.answer.shape.data.element,
  UsageList: readUsage.answer,
  Request: adminApi.showRequest.answer,
  RequestList: listRequests.answer,
  History: adminApi.readHistory.answer,
  MachineModel: listModels.answer.shape.data.element,
  MachineModelList: listModels.answer,
  ManageLine: adminApi.manageModel.answer,
  FleetMachine: listMachines.answer.shape.data.element,
  FleetMachineList: listMachines.answer,
  MachineRecord: adminApi.showMachineRecord.answer,
  MachineRecordList: listMachineRecords.answer,
  RemovedMachineRecord: adminApi.removeMachineRecord.answer,
  MadeJoin: adminApi.pairMachine.answer,
  Site: adminApi.showSite.answer,
  SiteStatus: adminApi.showSiteStatus.answer,
  Keep: adminApi.listKeeps.answer.shape.data.element,
  KeepList: adminApi.listKeeps.answer,
  RemovedKeep: adminApi.removeKeep.answer,
  KeepPlan: adminApi.showPlan.answer,
  Route: adminApi.explainRoute.answer,
  ModelRoute: adminApi.showRoute.answer,
  ChangedModelRoute: adminApi.setRoute.answer,
  ModelRouteList: adminApi.listRoutes.answer,
  RemovedModelRoute: adminApi.removeRoute.answer,
  AlertTarget: adminApi.listAlerts.answer.shape.data.element,
  AlertTargetList: adminApi.listAlerts.answer,
  OpenAlarm: adminApi.listAlarms.answer.shape.data.element,
  OpenAlarmList: adminApi.listAlarms.answer,
  Session: adminApi.listSessions.answer.shape.data.element,
  SessionList: adminApi.listSessions.answer,
  Me: adminApi.showMe.answer,
  Error: errorBody,
};

const refusalsOfAll: readonly FaultCode[] = [
  "bad_request",
  "invalid_type",
  "invalid_value",
  "unsupported_parameter",
  "backend_unavailable",
  "internal_error",
];
const refusalsOfKeys: readonly FaultCode[] = [...faultsOf("keys"), "insufficient_permissions"];

/** Returns the OpenAPI 3.1 document of the admin API, generated from the schemas that also validate its requests. */
function openApiDocument(): { readonly openapi: string } & Json {
  const paths: Record<string, Json> = {};
  for (const [operationId, each] of Object.entries({ ...adminApi, describeApi })) {
    const { path, method } = each;
    paths[path] = { ...paths[path], [method.toLowerCase()]: { operationId, ...describe(each) } };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Trunkline admin API",
      version: "1",
      description:
        "Keys are made, changed and taken back here, for all gateways at once, and the models of machines are " +
        "listed, managed and permitted, machines are paired and revoked, names are given to models, and the fleet is shown. Times are UTC; durations are written as 90d, 12h, 30m, 45s or 500ms. Errors have the " +
        "form of OpenAI's.",
    },
    servers: [{ url: adminPrefix }],
    security: [{ adminKey: [] }],
    paths,
    components: {
      securitySchemes: {
        adminKey: {
          type: "http",
          scheme: "bearer",
          description: "An admin key (trunkline_admin_…), or to read a viewer key (trunkline_viewer_…)",
        },
      },
      schemas: namedSchemas(components, answered),
    },
  };
}

function describe(described: AdminOperation): Json {
  const { summary, params, query, body, answer, status, media = jsonMedia, example } = described;
  const isOpen = described === describeApi;
  const takesBody = body !== nothing;
  const refusals = [
    ...refusalsOfAll,
    ...(isOpen ? [] : refusalsOfKeys),
    ...(takesBody ? faultsOf("bodies") : []),
    ...described.refusals,
  ];
  const schema = jsonSchema(body, sentExactly);
  const content = { [jsonMedia]: { schema, ...(example && { example }) } };
  return {
    summary,
    ...(isOpen ? { security: [] } : {}),
    parameters: [...parametersIn("path", params, sentExactly), ...parametersIn("query", query, sentExactly)],
    ...(takesBody ? { requestBody: { required: schema["required"] !== undefined, content } } : {}),
    responses: {
      [status]: { description: "Done.", content: { [media]: { schema: schemaOf(answer) } } },
      ...Object.fromEntries(byStatus(refusals, openAiStatus).map(([refused, codes]) => [refused, refusal(codes)])),
    },
  };
}

const jsonMedia = "application/json";

function refusal(codes: readonly FaultCode[]): Json {
  return { description: refusedWith(codes), content: { [jsonMedia]: { schema: schemaOf(errorBody) } } };
}

function schemaOf(schema: z.ZodType): Json {
  const name = Object.entries(components).find(([, each]) => each === schema)?.[0];
  return name === undefined ? jsonSchema(schema, answered) : { $ref: refTo(name) };
}
