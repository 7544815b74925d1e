import { z } from "zod";
import { faultEntry, type FaultCode } from "#shared/fault/fault-code.ts";
import { shownKey } from "#shared/keys/shown-key.ts";
import { manageLine } from "#shared/model/manage-line.ts";
import { modelListing, shownModel } from "#shared/model/shown-model.ts";
import { adminApi, adminPrefix, describeApi } from "./admin-api.ts";
import type { AdminOperation } from "./admin-operation.ts";
import {
  entryList,
  errorBody,
  issuedKey,
  keyList,
  nothing,
  revokedKey,
  shownEntry,
  shownUsage,
  usageList,
} from "./admin-schemas.ts";

type Json = Record<string, unknown>;

const components = {
  Key: shownKey,
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

/** The admin API as OpenAPI 3.1 describes it, written from the very schemas that requests are read with. */
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
        "listed and managed. Times are UTC; durations are written as 90d, 12h, 30m, 45s or 500ms. Errors have the " +
        "form of OpenAI's.",
    },
    servers: [{ url: adminPrefix }],
    security: [{ adminKey: [] }],
    paths,
    components: {
      securitySchemes: {
        adminKey: { type: "http", scheme: "bearer", description: "An admin key: trunkline_admin_…" },
      },
      schemas: namedSchemas(),
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
    ...(takesBody ? { requestBody: requestBody(plain(body, "input"), example) } : {}),
    responses: {
      [status]: { description: "Done.", content: json(schemaOf(answer), { media }) },
      ...Object.fromEntries(Object.entries(Object.groupBy(refusals, (code) => faultEntry(code).status)).map(refusal)),
    },
  };
}

function requestBody(schema: Json, example: object | undefined): Json {
  return { required: schema["required"] !== undefined, content: json(schema, { example }) };
}

function refusal([status, codes = []]: [string, readonly FaultCode[] | undefined]): [string, Json] {
  const told = codes.map((code) => {
    const { wire = code } = faultEntry(code);
    return wire ?? "null";
  });
  return [status, { description: `Refused, with the code ${told.join(" or ")}.`, content: json(schemaOf(errorBody)) }];
}

function parametersOf(schema: z.ZodType, place: "path" | "query"): Json[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, asWritten("input"));
  return Object.entries(properties).map(([name, shape]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: shape,
  }));
}

function schemaOf(schema: z.ZodType): Json {
  const name = Object.entries(components).find(([, each]) => each === schema)?.[0];
  return name === undefined ? plain(schema, "output") : { $ref: refTo(name) };
}

function namedSchemas(): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(components)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { uri: refTo, ...asWritten("output") });
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]));
}

function plain(schema: z.ZodType, io: "input" | "output"): Json {
  return withoutIdentity(z.toJSONSchema(schema, asWritten(io)));
}

function withoutIdentity(schema: object): Json {
  const { $schema: _schema, $id: _id, ...rest }: Json = { ...schema };
  return rest;
}

/**
 * What the schemas say in TypeScript's sense, in OpenAPI's: `readOnly` is no array that nobody changes, but a field that
 * may not be sent. Answers may get further fields one day, so clients are not told that there are none; and the pattern
 * of every day that there is says no more than its format.
 */
function asWritten(io: "input" | "output") {
  return {
    io,
    override({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
      delete jsonSchema.readOnly;
      if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
      if (io === "output" && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  };
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

function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}
