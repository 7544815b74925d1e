import { createHash } from "node:crypto";
import type { Resumable } from "#shared/protocol/frame-payload.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Needs } from "../routing/choose-machine.ts";
import type { ModelTarget } from "../routing/job-placements.ts";
import type { AnswerJob } from "../jobs/resume-answer.ts";
import type { TargetedWork } from "./choose.ts";
import { type AskedEffort, jobBody, type ReadRequest } from "./read-request.ts";

interface WorkTerms {
  readonly keyId: string;
  /** The models that may do it, in the order in which they are tried. */
  readonly targets: readonly ModelTarget[];
  /** The key's own salt for the caches of runtimes; undefined where keys share them. */
  readonly cacheSalt: string | undefined;
  readonly traceparent: string | undefined;
  /** The fields that are ignored, as the client named them. */
  readonly ignored: readonly string[];
}

const nothing = new Uint8Array();
/** The client's own trace in the W3C form. */
const traceForm = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;

/** The part of a request that machines work on: its body, and the metadata of its jobs. Its own methods alone change it. */
export class RequestWork implements TargetedWork {
  readonly kind: JobKind;
  readonly needs: Needs;
  readonly targets: readonly ModelTarget[];
  readonly streamed: boolean;
  /** Released with the first part of the answer: bodies are large, and answers take long. */
  body: Uint8Array;
  /** SHA-256 of a body that is sent in parts. */
  sha256: string | undefined;
  /** The effort of a request without which the job may run where the model or runtime lacks it. */
  effort: AskedEffort | undefined;
  /** The fields that are ignored, as the client named them. */
  ignored: readonly string[];
  /** The fingerprint of the request and its key, if it was made before. */
  madePrint: string | undefined;
  readonly #terms: WorkTerms;
  readonly #tellsStop: true | undefined;
  #resumable: Resumable | undefined;
  #given: ((job: AnswerJob) => void) | undefined;

  constructor(asked: ReadRequest, terms: WorkTerms) {
    const { kind, needs, stream, tellsStop, body, sha256, effort } = asked;
    const { keyId, targets, cacheSalt, ignored } = terms;
    this.kind = kind;
    this.targets = targets;
    this.streamed = stream;
    // A prompt of a key with its own salt matches no other key's.
    this.needs =
      cacheSalt === undefined || needs.prompt === undefined ? needs : { ...needs, prompt: { ...needs.prompt, keyId } };
    this.#terms = terms;
    this.#tellsStop = tellsStop ? true : undefined;
    this.ignored = ignored;
    this.body = body;
    this.sha256 = sha256;
    this.effort = effort;
  }

  /** Takes a body with what was fetched for it. */
  changeBody({ body, sha256 }: Pick<ReadRequest, "body" | "sha256">): void {
    this.body = body;
    this.sha256 = sha256;
  }

  /** Lets go of the body, and returns it. */
  releaseBody(): Uint8Array {
    const { body } = this;
    this.body = nothing;
    return body;
  }

  /** Leaves an effort out that the model or the runtime lacks. */
  leaveEffort(): void {
    if (this.effort === undefined) return;
    const { reasoning_effort: _, ...body } = JSON.parse(Buffer.from(this.body).toString()) as ChatBody;
    this.changeBody(jobBody(body));
    this.ignored = [...this.ignored, this.effort.field];
    this.effort = undefined;
  }

  /** Lets any gateway go on with the answer, which has this name in its API. `given` hears which machine has the job. */
  canBeResumed(made: Resumable, given?: (job: AnswerJob) => void): void {
    this.#resumable = made;
    this.#given = given;
  }

  /** Called when a machine has a job that can be resumed, with its whole body. */
  given(job: AnswerJob): void {
    this.#given?.(job);
  }

  /** Returns the metadata of a job. A machine that goes on with an answer has a part of it only. */
  headOf({ isWhole, inPieces }: { readonly isWhole: boolean; readonly inPieces: boolean }) {
    const { keyId, cacheSalt, traceparent = "" } = this.#terms;
    return {
      kind: this.kind,
      keyId,
      cacheSalt,
      resumable: isWhole ? this.#resumable : undefined,
      tellsStop: this.#tellsStop,
      whole: !inPieces,
      traceparent: traceForm.test(traceparent) ? traceparent : undefined,
    };
  }

  /** Makes the fingerprint of the request with its body, which may be kept elsewhere by now. */
  print(body: Uint8Array | undefined): string | undefined {
    const whole = this.body.byteLength > 0 ? this.body : body;
    if (whole === undefined) return this.madePrint;
    const name = `${this.#terms.keyId} ${this.kind} ${this.targets[0]?.modelId} `;
    return (this.madePrint ??= createHash("sha256").update(name).update(whole).digest("base64"));
  }
}
