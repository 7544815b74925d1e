import { Fault } from "#shared/fault/fault.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { chatBody } from "#shared/protocol/job-bodies.ts";
import {
  agentRefused,
  causeOf,
  ContextOverflow,
  meaningOf,
  type Overflow,
  overflowInText,
  runtimeFailed,
  type RuntimeRefusal,
} from "../runtime-faults.ts";

/** The server does not answer yet, because it is still loading the model. The request must be retried. */
export class ModelLoading extends Fault {
  constructor() {
    super("server_is_overloaded", { message: "The runtime is still loading the model." });
  }
}

/** The server has no such path, so it does not support the work of that path. */
export class PathUnknown extends Fault {
  constructor(internal: string) {
    super("upstream_error", { message: "The runtime does not have this endpoint.", internal });
  }
}

/** The fields of chats and of completions. */
const fields = new Set([...Object.keys(chatBody.shape), "prompt", "suffix"]);

/** Matches the place of a validation error from a server on FastAPI, written as Python or as JSON. */
const validationError = /['"]loc['"]: ?[[(]['"]body['"], ?['"](?<field>\w+)['"]/;

/**
 * Error texts that come with status 500 although the request is at fault: broken JSON, and requests that a template
 * refuses.
 */
const requestAtFault =
  /parse error|\[json\.exception|roles must alternate|failed to (parse|decode|load image)|raise_exception|invalid (type|argument)/i;

/**
 * Returns the fault for an answer that is not a success. The server's own text may hold paths, addresses and parts of
 * the prompt. It stays internal and is not kept.
 */
export function refusalFault(refusal: RuntimeRefusal): Fault {
  return complaintFault(complaintIn(errorIn(refusal.text), refusal.status));
}

/** Returns the fault for an error inside an answer. An error before any output counts as a late refusal. */
export function answerFault(error: unknown, { hasOutput }: { readonly hasOutput: boolean }): Fault {
  const complaint = complaintIn(error, undefined);
  if (!hasOutput) return complaintFault(complaint);
  const message = "The runtime failed during its answer.";
  return new Fault("upstream_error", { message, internal: `it reported an error (${causeOf(complaint.text)})` });
}

function complaintFault(complaint: Complaint): Fault {
  const { status, text, param, overflow } = complaint;
  const internal = `the runtime answered ${status} (${causeOf(text)})`;
  const refused = agentRefused(status, internal);
  if (refused !== undefined) return refused;
  if (status === 503 && /loading model/i.test(text)) return new ModelLoading();
  if (status === 503 || status === 429) {
    return new Fault("server_is_overloaded", { message: "The runtime is overloaded.", internal });
  }
  if (status === 404 && /^(file )?not found(?: \([^)]*\))?$|^invalid url\b/i.test(text))
    return new PathUnknown(internal);
  // A validation error quotes the request, so its text is not matched against other patterns.
  if (complaint.invalid !== undefined) {
    return new Fault("unsupported_value", {
      message: `The runtime of this model does not accept this '${complaint.invalid}'.`,
      param: complaint.invalid,
      internal: `the runtime answered ${status} (it does not accept '${complaint.invalid}')`,
    });
  }
  if (overflow !== undefined) return new ContextOverflow(overflow, internal);
  const known = meaningOf(text, internal);
  if (known !== undefined) return known;
  if (status === 400 || status === 413 || status === 422 || (status === 500 && requestAtFault.test(text))) {
    return new Fault("bad_request", { message: "The runtime refused the request.", param, internal });
  }
  return runtimeFailed(text, internal);
}

/** Returns the error of a body, in any of the forms that servers use, or the body itself. */
function errorIn(text: string): unknown {
  const body = jsonIn(text);
  return body === undefined ? text : (Object(body)["error"] ?? body);
}

/** An error of a server, read from any of the forms that servers use. */
type Complaint = ReturnType<typeof complaintIn>;

function complaintIn(error: unknown, status: number | undefined) {
  const record: Readonly<Record<string, unknown>> = Object(error);
  const message = record["message"] ?? record["detail"];
  const text = typeof error === "string" ? error : typeof message === "string" ? message : JSON.stringify(error ?? "");
  const code = Number(record["code"]);
  const param = record["param"];
  const invalid = validationError.exec(text)?.groups?.["field"];
  return {
    status: status ?? (code >= 400 && code < 600 ? code : 500),
    text,
    /** The field of the request that the error names, if it is one of our fields. */
    param: typeof param === "string" && fields.has(param) ? param : undefined,
    overflow: overflowIn(text, record),
    /** The field that a validation error names. */
    invalid: invalid !== undefined && fields.has(invalid) ? invalid : undefined,
  };
}

/** Returns the overflow that a server's error reports, or undefined for another error. */
function overflowIn(text: string, error: Readonly<Record<string, unknown>>): Overflow | undefined {
  const [prompt, window] = [error["n_prompt_tokens"], error["n_ctx"]];
  if (typeof prompt === "number" && typeof window === "number") return { promptTokens: prompt, windowTokens: window };
  const isOverflow = error["type"] === "exceed_context_size_error" || error["code"] === "context_length_exceeded";
  return overflowInText(text) ?? (isOverflow ? {} : undefined);
}

export function invalidEvent(internal: string): Fault {
  return new Fault("upstream_error", { message: "The runtime sent an invalid event.", internal });
}

/** Returns the fault for a stream that ended before the answer was complete. */
export function unfinished(hasOutput: boolean): Fault {
  return new Fault("upstream_error", {
    message: "The runtime ended its answer before it was complete.",
    internal: hasOutput
      ? "the stream ended without a finish_reason or [DONE]"
      : "the stream ended before it said anything",
  });
}

/** Returns the fault for a text from which its server removes reasoning and tool calls. */
export function leftOut(): Fault {
  return new Fault("upstream_error", {
    message: "The runtime takes what the model thinks, and the tools it calls, out of its text; use a chat for that.",
    internal: "the model wrote what its server takes for a thought or a call, and that is not told here",
  });
}

/**
 * Returns the fault for an interrupted stream. llama-cpp-python's server leaves a stream as soon as another request
 * comes, from any client.
 */
export function interrupted(): Fault {
  return new Fault("upstream_error", {
    message: "The runtime left its answer for another request.",
    internal:
      "the stream ended in [DONE] without a finish_reason: the server interrupts a stream when another client asks it; " +
      "start it with --interrupt_requests false",
  });
}
