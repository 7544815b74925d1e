import type { FaultCode } from "./fault-code.ts";

interface FaultDetails {
  /** For whoever sent the request. Never holds a secret, a prompt, an address or another's text. */
  readonly message: string;
  /** For the log of the process that raised it. Never sent anywhere. */
  readonly internal?: string | undefined;
  /** The part of the request that is at fault, as a path such as `messages[2].content`. */
  readonly param?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  /** The runtime broke off while it worked on the request, as one does that dies. */
  readonly runtimeDied?: boolean | undefined;
  readonly cause?: unknown;
}

/** An expected failure, with one message for the caller and another for the log. */
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

  /** Adopts anything that was thrown; what is no Fault is a bug, and its text stays inside. */
  static from(thrown: unknown): Fault {
    if (thrown instanceof Fault) return thrown;
    return new Fault("internal_error", {
      message: "Something went wrong inside Trunkline. The request id in the x-request-id header finds it in the log.",
      internal: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown),
      cause: thrown,
    });
  }
}
