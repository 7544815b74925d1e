import type { z } from "zod";
import type { FaultCode } from "#shared/fault/fault.ts";
import { fleetListing, shownFleetMachine, shownRoute } from "#shared/fleet/shown-fleet.ts";
import { shownKey } from "#shared/keys/shown-key.ts";
import { shownMachineRecord } from "#shared/machines/shown-machine.ts";
import { shownModelRoute } from "#shared/routes/route-record.ts";
import { manageLine, modelListing, shownModel } from "#shared/model/model.ts";
import { answered, type Json, jsonSchema, namedSchemas, refTo, sentExactly } from "../openapi/json-schemas.ts";
import { byStatus, openAiStatus, refusedWith } from "../openapi/public-faults.ts";
import { adminApi, type AdminOperation, adminPrefix, describeApi } from "./admin-api.ts";
import {
  changedKey,
  changedModelRoute,
  entryList,
  errorBody,
  issuedKey,
  keyList,
  machineRecordList,
  madeJoin,
  modelRouteList,
  nothing,
  removedMachineRecord,
  removedModelRoute,
  revokedKey,
  shownEntry,
  shownSite,
  shownUsage,
  usageList,
} from "./admin-schemas.ts";

const components = {
  Key: shownKey,
  ChangedKey: changedKey,
  IssuedKey: issuedKey,
  KeyList: keyList,
  RevokedKey: revokedKey,
  AuditEntry: shownEntry,
  AuditEntryList: entryList,
  UsageRow: shownUsage,
  UsageList: usageList,
  MachineModel: shownModel,
  MachineModelList: modelListing,
  ManageLine: manageLine,
  FleetMachine: shownFleetMachine,
  FleetMachineList: fleetListing,
  Route: shownRoute,
  ModelRoute: shownModelRoute,
  ChangedModelRoute: changedModelRoute,
  ModelRouteList: modelRouteList,
  RemovedModelRoute: removedModelRoute,
  MachineRecord: shownMachineRecord,
  MachineRecordList: machineRecordList,
  RemovedMachineRecord: removedMachineRecord,
  MadeJoin: madeJoin,
  Site: shownSite,
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
const refusalsOfKeys: readonly FaultCode[] = [
  "key_invalid",
  "key_expired",
  "insufficient_permissions",
  "auth_unavailable",
];
const refusalsOfBodies: readonly FaultCode[] = [
  "invalid_json",
  "missing_required_parameter",
  "integer_below_min_value",
  "integer_above_max_value",
  "string_too_long",
  "empty_array",
  "array_above_max_length",
  "request_too_large",
  "unsupported_media_type",
];

/** Returns the OpenAPI 3.1 document of the admin API, generated from the schemas that also validate its requests. */
export function openApiDocument(): { readonly openapi: string } & Json {
  const paths: Record<string, Json> = {};
  for (const [operationId, operation] of Object.entries({ ...adminApi, describeApi })) {
    const { path, method } = operation;
    paths[path] = { ...paths[path], [method.toLowerCase()]: { operationId, ...describe(operation) } };
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

function describe(operation: AdminOperation): Json {
  const { summary, params, query, body, answer, status, media, example } = operation;
  const isOpen = operation === describeApi;
  const takesBody = body !== nothing;
  const refusals = [
    ...refusalsOfAll,
    ...(isOpen ? [] : refusalsOfKeys),
    ...(takesBody ? refusalsOfBodies : []),
    ...operation.refusals,
  ];
  return {
    summary,
    ...(isOpen ? { security: [] } : {}),
    parameters: [...parametersOf(params, "path"), ...parametersOf(query, "query")],
    ...(takesBody ? { requestBody: requestBody(jsonSchema(body, sentExactly), example) } : {}),
    responses: {
      [status]: { description: "Done.", content: json(schemaOf(answer), { media }) },
      ...Object.fromEntries(byStatus(refusals, openAiStatus).map(([refused, codes]) => [refused, refusal(codes)])),
    },
  };
}

function requestBody(schema: Json, example: object | undefined): Json {
  return { required: schema["required"] !== undefined, content: json(schema, { example }) };
}

function refusal(codes: readonly FaultCode[]): Json {
  return { description: refusedWith(codes), content: json(schemaOf(errorBody)) };
}

function parametersOf(schema: z.ZodType, place: "path" | "query"): Json[] {
  const { properties = {}, required = [] } = jsonSchema(schema, sentExactly);
  return Object.entries(properties).map(([name, shape]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: shape,
  }));
}

function schemaOf(schema: z.ZodType): Json {
  const name = Object.entries(components).find(([, each]) => each === schema)?.[0];
  return name === undefined ? jsonSchema(schema, answered) : { $ref: refTo(name) };
}

function json(
  schema: Json,
  {
    media = "application/json",
    example,
  }: { readonly media?: string | undefined; readonly example?: object | undefined } = {},
): Json {
  return { [media]: { schema, ...(example === undefined ? {} : { example }) } };
}
