import { faultEntry, type FaultCode } from "./fault-code.ts";

interface FaultDetails {
  /** For the client. Never holds a secret, a prompt, an address or another client's text. */
  readonly message: string;
  /**
   * For logs and operators, never for clients. Holds only Trunkline's own words, numbers and codes: never the text of a
   * runtime or a parser, which may quote a prompt.
   */
  readonly internal?: string | undefined;
  /** The invalid part of the request, as a path such as `messages[2].content`. */
  readonly param?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** True if the connection to the runtime broke during the request, as when a runtime crashes. */
  readonly runtimeDied?: boolean | undefined;
  readonly cause?: unknown;
}

/** An expected failure, with one message for the client and another for the log. */
export class Fault extends Error {
  override readonly name = "Fault";
  readonly code: FaultCode;
  readonly internal: string | undefined;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly runtimeDied: boolean;

  constructor(code: FaultCode, details: FaultDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.internal = details.internal;
    this.param = details.param;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.runtimeDied = details.runtimeDied ?? false;
  }

  /**
   * The reason for logs and operators. Without `internal` it is the message, except for a refusal (4xx): its message
   * may name parts of the request.
   */
  get reason(): string | undefined {
    return this.internal ?? (faultEntry(this.code).status >= 500 ? this.message : undefined);
  }

  /** Converts any thrown value into a Fault. A value that is no Fault is a bug, and its text stays internal. */
  static from(thrown: unknown): Fault {
    if (thrown instanceof Fault) return thrown;
    return new Fault("internal_error", {
      message: "Something went wrong inside Trunkline. The request id in the x-request-id header finds it in the log.",
      internal: originOf(thrown),
      cause: thrown,
    });
  }
}

/**
 * Returns the origin of an unexpected error: its name, its code and its stack, without its message. Parsers and
 * libraries quote their input in messages, and the input may be a prompt.
 */
export function originOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `a ${typeof thrown} was thrown`;
  const { name, message, stack = "" } = thrown;
  const at = message === "" ? stack.indexOf("\n") : stack.indexOf(message) + message.length;
  const hasMessage = message === "" || stack.includes(message);
  const code = "code" in thrown && typeof thrown.code === "string" ? ` [${thrown.code}]` : "";
  return `${name}${code}${hasMessage && at >= 0 ? stack.slice(at) : ""}`;
}

/** Describes the first mismatch of a value with its schema. It leaves out zod's own message, which may quote texts. */
export function misfitOf(error: {
  readonly issues: readonly { readonly code: string; readonly path: readonly PropertyKey[] }[];
}): string {
  const [issue] = error.issues;
  const path = issue?.path.map((part) => (typeof part === "number" ? part : fieldName.test(String(part)) ? part : "…"));
  return `${path?.join(".") ?? ""}: ${issue?.code ?? "unknown"}`;
}

/** Matches field names of the protocols here. Any other key may be a client's text. */
const fieldName = /^[a-z_]{1,30}$/;
