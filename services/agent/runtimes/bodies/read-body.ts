import type { z } from "zod";
import { Fault, misfitOf } from "#shared/fault/fault.ts";
import { chatBody, completeBody, embedBody, manageBody, unknownFields } from "#shared/protocol/job-bodies.ts";
import { readJson } from "#shared/protocol/frame-payload.ts";

const schemas = { chat: chatBody, complete: completeBody, embed: embedBody, manage: manageBody } as const;
type Schemas = typeof schemas;

/**
 * Reads the body of a job. The gateway has checked it, so an invalid body comes from a gateway that is newer than this
 * agent. It is refused with the field's name, and never run with a field dropped.
 */
export function readBody<Kind extends keyof Schemas>(kind: Kind, bytes: Uint8Array): z.output<Schemas[Kind]> {
  const value = parseJson(bytes);
  const { success, data, error } = schemas[kind].safeParse(value);
  if (!success) throw unknownPart(error.issues[0]?.path[0], misfitOf(error));
  const [unknown] = unknownFields(value, data);
  if (unknown !== undefined) throw unknownPart(unknown.at(-1), "the body has an unknown field");
  return data as z.output<Schemas[Kind]>;
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return readJson(bytes);
  } catch (error) {
    throw new Fault("internal_error", { message: "The request did not reach the machine in one piece.", cause: error });
  }
}

function unknownPart(field: PropertyKey | undefined, internal: string): Fault {
  return new Fault("unsupported_parameter", {
    message: "The agent on this machine does not know a part of this request; it may be older than its gateway.",
    ...(field === undefined ? {} : { param: String(field) }),
    internal,
  });
}
