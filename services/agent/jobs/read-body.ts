import type { z } from "zod";
import { Fault, misfitOf } from "#shared/fault/fault.ts";
import { mayHoldBigInteger, parseExactly } from "#shared/process/exact-json.ts";

/**
 * Reads the body of a job. The gateway has checked it, so an invalid body comes from a gateway that is newer than this
 * agent. It is refused with the field's name, and never run with a field dropped. A value that satisfies `isPlain` is
 * valid as it is and skips the schema.
 */
export function readBody<Schema extends z.ZodType>(
  schema: Schema,
  bytes: Uint8Array,
  isPlain?: (value: unknown) => value is z.output<Schema>,
): z.output<Schema> {
  const value = parseJson(bytes);
  if (isPlain?.(value)) return value;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.code === "unrecognized_keys" ? issue.keys[0] : issue?.path[0];
  throw new Fault("unsupported_parameter", {
    message: "The agent on this machine does not know a part of this request; it may be older than its gateway.",
    ...(field === undefined ? {} : { param: String(field) }),
    internal: misfitOf(parsed.error),
  });
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    // Only tools and response formats may hold big integers. All other numbers of a body are Trunkline's own, and
    // small.
    const holdsSchema = buffer.includes('"tools"') || buffer.includes('"response_format"');
    const text = buffer.toString();
    return holdsSchema && mayHoldBigInteger(text) ? parseExactly(text) : JSON.parse(text);
  } catch (error) {
    throw new Fault("internal_error", { message: "The request did not reach the machine in one piece.", cause: error });
  }
}
