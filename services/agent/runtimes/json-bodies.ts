import type { z } from "zod";
import { Fault, misfitOf } from "#shared/fault/fault.ts";
import { WorkThread } from "#shared/process/work-thread.ts";
import { readJson } from "#shared/protocol/frame-payload.ts";
import { chatBody, completeBody, embedBody, manageBody, rankBody, unknownFields } from "#shared/protocol/job-bodies.ts";
import { limits } from "#shared/protocol/limits.ts";

const schemas = { chat: chatBody, complete: completeBody, embed: embedBody, rerank: rankBody, manage: manageBody };
type BodySchemas = typeof schemas;
type BodyOf<Kind extends keyof BodySchemas> = z.output<BodySchemas[Kind]>;

/**
 * Reads the body of a job. The gateway has checked it, so an invalid body comes from a gateway that is newer than this
 * agent. It is refused with the field's name, and never run with a field dropped.
 */
export function readBody<Kind extends keyof BodySchemas>(kind: Kind, bytes: Uint8Array): BodyOf<Kind> {
  let value: unknown;
  try {
    value = readJson(bytes);
  } catch (error) {
    throw new Fault("internal_error", { message: "The request did not reach the machine in one piece.", cause: error });
  }
  const { success, data, error } = schemas[kind].safeParse(value);
  if (!success) throw unknownPart(error.issues[0]?.path[0], misfitOf(error));
  const [unknown] = unknownFields(value, data);
  if (unknown !== undefined) throw unknownPart(unknown.at(-1), "the body has an unknown field");
  return data as BodyOf<Kind>;
}

export function unknownPart(field: PropertyKey | undefined, internal: string): Fault {
  return new Fault("unsupported_parameter", {
    message: "The agent on this machine does not know a part of this request; it may be older than its gateway.",
    ...(field === undefined ? {} : { param: String(field) }),
    internal,
  });
}

/** An order to the thread: a job's body to read, or a runtime's request to write. */
export type JsonOrder =
  | { readonly kind: keyof BodySchemas; readonly bytes: Uint8Array }
  | { readonly written: unknown };

/** Reads and writes large bodies beside the event loop, so that other answers go on. */
const thread = new WorkThread<JsonOrder, unknown>(new URL("./json-thread.ts", import.meta.url));

/** Reads the body of a job; a large one in the thread. */
export async function readAnyBody<Kind extends keyof BodySchemas>(
  kind: Kind,
  bytes: Uint8Array,
): Promise<BodyOf<Kind>> {
  if (bytes.byteLength <= limits.partBytes) return readBody(kind, bytes);
  return (await thread.run({ kind, bytes }, bytes)) as BodyOf<Kind>;
}

/** Writes a value as JSON in the thread. Returns undefined for a value that is not large. */
export function writeLargeJson(value: unknown): Promise<Uint8Array> | undefined {
  if (sizeOf(value) <= limits.partBytes) return undefined;
  return thread.run({ written: value }, new Uint8Array()) as Promise<Uint8Array>;
}

/** Returns the size of the texts and fields of a value together. Counts only until they are large. */
function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 1;
  let size = 1;
  for (const field of Object.values(value)) {
    size += sizeOf(field);
    if (size > limits.partBytes) break;
  }
  return size;
}
