import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { mayHoldBigInteger, parseExactly } from "#shared/process/exact-json.ts";

/**
 * Reads the body of a job. The gateway has checked it, so what does not fit comes from a gateway that is newer than this
 * agent: it is refused by name, and never run with a field dropped. What `isPlain` knows the schema would take as it is.
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
    internal: parsed.error.message,
  });
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    // All other numbers of a body are ours, and small.
    const holdsSchema = buffer.includes('"tools"') || buffer.includes('"response_format"');
    const text = buffer.toString();
    return holdsSchema && mayHoldBigInteger(text) ? parseExactly(text) : JSON.parse(text);
  } catch (error) {
    throw new Fault("internal_error", { message: "The request did not reach the machine in one piece.", cause: error });
  }
}
