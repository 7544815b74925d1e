import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { linesMedia } from "#shared/protocol/model.ts";
import type { Response as Described } from "../../services/gateway/openapi/describe-operation.ts";
import type { OpenApiDocument } from "../../services/gateway/openapi/public-document.ts";

/** Headers that say something of this API, and not of HTTP. */
const ownHeaders = /^(?:x-|openai-|retry-after|www-authenticate$|allow$)/;
/** What streams have so that proxies do not gather them. */
const forProxies = new Set(["x-accel-buffering", "x-content-type-options"]);

interface Asked {
  readonly method: "get" | "post" | "delete";
  /** As the document writes it. */
  readonly path: string;
}

/**
 * A document of an API as a judge of real answers. It is stricter than what it judges by: a field or a header that is
 * not described is an error, although clients have to bear with those.
 */
export class DescribedApi {
  readonly #document: OpenApiDocument;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: OpenApiDocument) {
    this.#document = document;
    this.#ajv.addSchema({ ...Object(closed(document)), $id: "api" });
  }

  operation({ method, path }: Asked): OpenApiDocument["paths"][string][string] {
    const operation = this.#document.paths[path]?.[method];
    if (operation === undefined) throw new Error(`${method} ${path} is not described`);
    return operation;
  }

  /** What is wrong with an answer that was read to its end; nothing when it is just as described. */
  faultsOf(asked: Asked, answer: { status: number; headers: Headers; body: string }): string[] {
    const { status, headers, body } = answer;
    const described = this.operation(asked).responses[String(status)];
    if (described === undefined) return [`${asked.path}: ${status} is not described`];
    const media = (headers.get("content-type") ?? "").split(";")[0] ?? "";
    const medium = described.content[media];
    if (medium === undefined) return [`${asked.path}: ${status} as ${media} is not described`];
    const data = media === "text/event-stream" ? dataOf(body) : media === linesMedia ? body.trim().split("\n") : [body];
    return [
      ...data.flatMap((each) => this.misfits(medium.schema, JSON.parse(each))),
      ...headerFaults(described, headers),
      ...codeFaults(described, data),
    ].map((fault) => `${asked.method} ${asked.path} ${status}: ${fault}`);
  }

  misfits(schema: object, value: unknown): string[] {
    const written = JSON.stringify(schema).replaceAll("#/components", "api#/components");
    const validate = this.#validators.getOrInsertComputed(written, () =>
      this.#ajv.compile(JSON.parse(written) as object),
    );
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }
}

/** The data of all events, but of the one that is none. */
function dataOf(stream: string): string[] {
  const data = stream.split("\n\n").flatMap((each) => /^(?:event: .*\n)?data: ([^\r\n]*)$/.exec(each)?.[1] ?? []);
  return data.filter((each) => each !== "[DONE]");
}

function headerFaults(described: Described, headers: Headers): string[] {
  const named = Object.keys(described.headers ?? {});
  const sent = [...headers.keys()].filter((name) => ownHeaders.test(name) && !forProxies.has(name));
  const missing = ["x-request-id", "openai-processing-ms"].filter((name) => !headers.has(name));
  return [
    ...sent.filter((name) => !named.includes(name)).map((name) => `the header ${name} is not described`),
    ...missing.map((name) => `the header ${name} is missing`),
  ];
}

function codeFaults({ "x-trunkline-codes": codes }: Described, data: readonly string[]): string[] {
  if (codes === undefined) return [];
  const told = JSON.parse(data[0] ?? "{}") as { error?: { code: string | null } | string; code?: string | null };
  const { code = null } = typeof told.error === "object" ? told.error : told;
  return told.error === undefined || codes.includes(code) ? [] : [`the code ${code} is not described`];
}

/** The same with no room in any object for what is not described. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const inside = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, closed(each)]));
  const isObject = "properties" in value && "type" in value && value.type === "object";
  return isObject && !("additionalProperties" in value) ? { ...inside, additionalProperties: false } : inside;
}
