import { hash } from "node:crypto";
import { Fault } from "#shared/fault/fault.ts";
import { type OrderOwner, WorkThread } from "#shared/process/work-thread.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Needs } from "../routing/choose-machine.ts";
import { readForm } from "../http/read-form.ts";
import { readJsonObject } from "../http/read-json.ts";
import type { RemoteImage } from "../images/image-fetcher.ts";
import { namedUser } from "./named-user.ts";
import type { NamedUser } from "../people/end-users.ts";
import type { TokenCeiling } from "../limits/token-estimates.ts";

/** The effort of a request, and the field of the request that it came from. */
export interface AskedEffort {
  readonly field: string;
  readonly value: string;
}

/** A request to a model, once its shape is valid. All of it is plain data: another thread may read the request. */
export interface ReadRequest<Form = unknown> {
  readonly kind: JobKind;
  readonly model: string;
  readonly needs: Needs;
  /** The body of the job, and the hash of a body that is sent in parts. */
  readonly body: Uint8Array;
  readonly sha256: string | undefined;
  /** True if the answer is streamed. */
  readonly stream: boolean;
  /** The part that the endpoint of the request alone reads, for its answer. */
  readonly form: Form;
  /** Paths of the request's unknown fields, which are ignored. */
  readonly ignored: readonly string[];
  /** The end user that the request names, which is believed for keys alone that say so. */
  readonly user?: NamedUser | undefined;
  /** The images that have to be fetched; the body has their URLs. */
  readonly remoteImages?: readonly RemoteImage[] | undefined;
  /** The effort of a request without which the job may run where the model or runtime lacks it. */
  readonly effort?: AskedEffort | undefined;
  /** True if the answer tells which stop string ended it. */
  readonly tellsStop?: boolean | undefined;
  /** Estimated tokens of the prompt, and of the prompt with the longest answers that the request allows. */
  readonly promptTokens: number;
  readonly tokens: number;
  /** The most tokens that a machine may report for the request; more is not believed. */
  readonly ceiling: TokenCeiling;
}

/** A request that its API has translated to the body of its job. */
export type Translated<Body, Form> = Pick<ReadRequest<Form>, "model" | "stream" | "ignored" | "form"> & {
  readonly body: Body;
};

/** Texts of the store that a request names, by their ids. */
export type StoredTexts = ReadonlyMap<string, string>;

/** Returns the text of a list of token ids, which stands at `param`. */
export type TextOfTokens = (ids: readonly unknown[], param: string) => string;

export interface ReadOptions {
  /** The stored texts that the request names; undefined if its key has none stored. */
  readonly stored?: StoredTexts | undefined;
  /** The secret number that hashes of prompts begin with. */
  readonly promptSeed?: number;
  /** Only the reading thread has it, since its table is large. */
  readonly textOfTokens?: TextOfTokens;
  /** The boundary of a body that is a form; undefined for one that is JSON. */
  readonly boundary?: string | undefined;
}

/** The reading of one kind of request. */
export interface Reading {
  /** Checks a request, and translates it to the body of its job. */
  read(input: Record<string, unknown>, options: ReadOptions): ReadRequest;
  /** True if a request is read in a thread although it is short. `size` counts the stored texts too. */
  isSlow?(bytes: Buffer, size: number): boolean;
}

/** The readings of all kinds of requests. They know no Fastify and no renderer: reading threads load them too. */
export type Reads = Readonly<Record<string, Reading>>;

/** Reads a request of a kind from its bytes. */
export function readRequest(
  reads: Reads,
  { kind, bytes, ...options }: ReadOptions & { readonly kind: string; readonly bytes: Buffer | undefined },
): ReadRequest {
  const { boundary } = options;
  const reading = reads[kind];
  if (reading === undefined) throw Fault.from(new Error(`no API reads requests of the kind ${kind}`));
  const input = boundary === undefined ? readJsonObject(bytes) : readForm(bytes, boundary);
  const user = namedUser(input);
  return Object.assign(reading.read(input, options), { user });
}

/** Reads a request that turns texts into numbers, whose work is in its input alone. */
export function readAsTexts<Form>(
  { body, ...request }: Translated<object, Form>,
  {
    kind,
    tokens,
    ceilingOf,
  }: Pick<ReadRequest, "kind" | "tokens"> & { readonly ceilingOf: (bytes: number) => TokenCeiling },
): ReadRequest<Form> {
  const job = jobBody(body);
  const needs = needsOfInput(kind === "embed" ? "embedding" : "rerank", tokens);
  return { ...request, kind, needs, ...job, promptTokens: tokens, tokens, ceiling: ceilingOf(job.body.byteLength) };
}

/** Returns the needs of a request whose work is in its input alone. */
export function needsOfInput(capability: Needs["capability"], workTokens: number): Needs {
  return { capability, tools: false, imageParam: undefined, workTokens, answerTokensMax: 0 };
}

/** Returns a job's body as bytes, and the hash of a body that is sent in parts. */
export function jobBody(value: object): Pick<ReadRequest, "body" | "sha256"> {
  return jobBytes(encodeJson(value));
}

export function jobBytes(body: Uint8Array): Pick<ReadRequest, "body" | "sha256"> {
  return { body, sha256: body.byteLength > limits.partBytes ? hash("sha256", body) : undefined };
}

/** A request that a reading thread reads. */
export interface ReadOrder extends Pick<ReadOptions, "promptSeed" | "stored" | "boundary"> {
  readonly kind: string;
  readonly bytes: Uint8Array;
}

/** Up to this size a request is read in the main thread: that is faster than handing it over. */
const readHereBytesMax = limits.partBytes;
/** Larger requests are read in a thread of their own: one takes half a second, for which smaller ones do not wait. */
const readBesideBytesMax = 1024 * 1024;
/** Bytes of all requests that the reading threads read, or that wait for them. */
export const readingBytesMax = 256 * 1024 * 1024;
/** The CPU time that a reading thread may take for a megabyte of a request: ten times what the densest takes. */
export const readingCpuMsPerMb = 1_000;
const tooSlowToRead = `This request took more than ${readingCpuMsPerMb} ms of CPU time for each megabyte to read (readingCpuMsPerMb); send it in smaller parts.`;

/** Reads the requests of a gateway, the large ones in threads. */
export class RequestReader {
  readonly #reads: Reads;
  readonly #promptSeed: number;
  readonly #thread: WorkThread<ReadOrder, ReadRequest>;
  readonly #largeThread: WorkThread<ReadOrder, ReadRequest>;

  /** `promptSeed` is the secret number that hashes of prompts begin with. `thread` is the module of a reading thread. */
  constructor(promptSeed: number, { reads, thread }: { readonly reads: Reads; readonly thread: URL }) {
    const bound = {
      msPerMb: readingCpuMsPerMb,
      fault: () => new Fault("bad_request", { message: tooSlowToRead }),
    };
    this.#reads = reads;
    this.#promptSeed = promptSeed;
    this.#thread = new WorkThread(thread, bound);
    this.#largeThread = new WorkThread(thread, bound);
  }

  /** Reads a request, in a reading thread if it is large with the stored texts that it names. */
  async read(
    kind: string,
    bytes: Buffer | undefined,
    { stored, boundary, ...owner }: Pick<ReadOptions, "stored" | "boundary"> & OrderOwner = {},
  ): Promise<ReadRequest> {
    if (bytes === undefined) return readRequest(this.#reads, { kind, bytes, boundary });
    const promptSeed = this.#promptSeed;
    const storedLength = stored?.values().reduce((sum, { length }) => sum + length, 0) ?? 0;
    const size = bytes.byteLength + storedLength;
    const needsThread = size > readHereBytesMax || this.#reads[kind]?.isSlow?.(bytes, size) === true;
    if (!needsThread) return readRequest(this.#reads, { kind, bytes, promptSeed, stored, boundary });
    if (this.#thread.bytes + this.#largeThread.bytes + size > readingBytesMax) {
      const message = `The large requests that this gateway reads hold ${readingBytesMax} bytes already (readingBytesMax).`;
      throw new Fault("server_is_overloaded", { message });
    }
    const thread = size > readBesideBytesMax ? this.#largeThread : this.#thread;
    return thread.run({ kind, bytes, promptSeed, stored, boundary }, bytes, { ...owner, size });
  }

  /** Stops the reading threads; requests that still wait end in a fault. */
  async stop(): Promise<void> {
    await Promise.all([this.#thread.stop(), this.#largeThread.stop()]);
  }
}
