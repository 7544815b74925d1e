import { Fault } from "#shared/fault/fault.ts";
import { numberBounds } from "#shared/protocol/job-bodies.ts";
import type { GrammarSchema } from "./gguf-engine.ts";

/**
 * All that the engine's grammars honour, the keywords that restrict no value, and the bounds of numbers: gateways tell
 * clients that those are left out.
 */
const honoured = new Set([
  ...numberBounds,
  ...(
    "type properties required additionalProperties items prefixItems minItems maxItems minLength maxLength format " +
    "const enum anyOf oneOf $ref $defs definitions " +
    "title description default examples $schema $id $comment deprecated readOnly writeOnly"
  ).split(" "),
]);
/** Keywords of which the engine's grammars honour one in a schema, and drop the others. */
const exclusive = ["$ref", "const", "enum", "anyOf", "oneOf", "properties", "items"];
const formats = ["date-time", "date", "time"];

export const anyObject: GrammarSchema = { type: "object", additionalProperties: true };
const anyValue = { oneOf: [anyObject, { type: "array" }, { type: ["string", "number", "boolean", "null"] }] };

/**
 * Returns the schema of an answer in the dialect of the engine's grammars, which drop in silence what they do not know.
 * Refuses such a schema: but for bounds of numbers the result admits nothing that the schema does not admit.
 */
export function answerSchema(schema: GrammarSchema, param: string): GrammarSchema {
  return translated(schema, (what) => {
    const message = `The runtime of this model cannot hold an answer to '${param}': it has ${what}.`;
    throw new Fault("unsupported_value", { message, param });
  });
}

/**
 * Returns the schema of a tool's parameters in the dialect of the engine's grammars. Restrictions that a grammar cannot
 * express stand in the prompt only. Grammars give all properties: an optional one becomes null, and `withoutNulls`
 * drops it.
 */
export function parametersSchema(parameters: GrammarSchema = { type: "object", properties: {} }): GrammarSchema {
  const schema = translated(parameters, () => anyValue);
  if (schema["type"] !== "object") return anyObject;
  const properties = Object.entries(objectOf(schema["properties"])).map(([name, each]) => {
    return [name, listOf(parameters["required"]).includes(name) ? each : { oneOf: [each, { type: "null" }] }];
  });
  return { ...schema, properties: Object.fromEntries(properties) as GrammarSchema };
}

/** Returns the arguments of a call as JSON text, without the optional ones that are null. */
export function withoutNulls(params: unknown, parameters: GrammarSchema | undefined): string {
  const required = listOf(parameters?.["required"]);
  const given = Object.entries(objectOf(params)).filter(([name, value]) => value !== null || required.includes(name));
  return JSON.stringify(Object.fromEntries(given));
}

type Refuse = (what: string) => GrammarSchema;

function translated(root: GrammarSchema, refuse: Refuse): GrammarSchema {
  const definitions = { ...objectOf(root["definitions"]), ...objectOf(root["$defs"]) };
  const each = (schema: unknown): GrammarSchema => {
    if (schema === undefined || schema === true) return anyValue;
    if (typeof schema !== "object" || schema === null) return refuse("a schema that is not an object");
    const { $ref, anyOf, oneOf = anyOf, type, format, ...rest } = schema as GrammarSchema;
    const unknown = Object.keys(schema).find((key) => !honoured.has(key));
    if (unknown !== undefined) refuse(`'${unknown}'`);
    const together = exclusive.filter((key) => key in schema);
    if (together.length > 1) refuse(together.map((key) => `'${key}'`).join(" beside "));
    if (typeof $ref === "string") {
      const name = /^#\/(?:\$defs|definitions)\/(.*)$/.exec($ref)?.[1] ?? "";
      return name in definitions ? { $ref: `#/$defs/${name}` } : refuse(`the reference '${$ref}'`);
    }
    if ([rest["const"], ...listOf(rest["enum"])].some((value) => typeof value === "object" && value !== null)) {
      return refuse("an 'enum' of objects");
    }
    if ("const" in rest || "enum" in rest) return rest;
    if (Array.isArray(oneOf)) {
      if (type !== undefined) refuse("'type' beside alternatives");
      return { ...rest, oneOf: oneOf.map(each) };
    }
    if (Array.isArray(type))
      return { ...rest, oneOf: type.map((one) => each({ ...(schema as GrammarSchema), type: one })) };
    if (type === "object" || (type === undefined && "properties" in rest))
      return { ...rest, type: "object", ...membersOf(rest, each, refuse) };
    if (type === "array" || (type === undefined && "items" in rest)) {
      const { items, prefixItems } = rest;
      const first = Array.isArray(prefixItems) && { prefixItems: prefixItems.map(each) };
      return { ...rest, type: "array", items: each(items), ...first };
    }
    if (type === undefined) return { ...rest, ...anyValue };
    return { ...rest, type, ...(formats.includes(String(format)) && { format }) };
  };
  const $defs = Object.fromEntries(Object.entries(definitions).map(([name, schema]) => [name, each(schema)]));
  return { ...each(root), ...(Object.keys($defs).length > 0 && { $defs }) };
}

/** The model adds properties of its own only where the schema declares none: it would rarely find an end. */
function membersOf(schema: GrammarSchema, each: (schema: unknown) => GrammarSchema, refuse: Refuse): GrammarSchema {
  const { additionalProperties: others = true, required } = schema;
  const declared = objectOf(schema["properties"]);
  const undeclared = listOf(required).filter((name) => !Object.hasOwn(declared, String(name)));
  if (undeclared.length > 0) refuse("'required' properties that it does not declare");
  const properties = Object.entries(declared).map(([name, member]) => [name, each(member)]);
  if (properties.length > 0)
    return { properties: Object.fromEntries(properties) as GrammarSchema, additionalProperties: false };
  return { additionalProperties: typeof others === "boolean" ? others : each(others) };
}

export function objectOf(value: unknown): GrammarSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as GrammarSchema) : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
