import type { FastifyReply, FastifyRequest } from "fastify";
import type { Fault } from "#shared/fault/fault.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import type { Usage } from "#shared/protocol/answer-events.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { PricedSize } from "#shared/prices/cost.ts";
import type { Book } from "#shared/records/book.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { RouteTable } from "../fleet/route-records.ts";
import type { RouteRecords } from "../fleet/route-records.ts";
import type { PriceRecords } from "../fleet/price-records.ts";
import type { ImageFetcher } from "../images/image-fetcher.ts";
import type { IdempotencyRecords } from "../jobs/idempotency-records.ts";
import type { AnswerHead, AnswerRenderer, JobOffer, StreamEnds } from "../jobs/answer-parts.ts";
import type { ContinuationRoom } from "../jobs/continue-answer.ts";
import type { Settlements } from "../limits/settlements.ts";
import type { EndUserBooks } from "../people/end-users.ts";
import type { AnswerResumer } from "../jobs/resume-answer.ts";
import type { ReadRequest, RequestReader, StoredTexts } from "./read-request.ts";
import type { ModelRequest } from "./request.ts";
import type { JobRunner } from "./run-job.ts";

/** An endpoint that asks models for something, as its API describes it. Each of its requests is one job on one machine. */
export interface Endpoint {
  /** Names the endpoint to its reader, and in the digest of an `Idempotency-Key`: such a name never changes. */
  readonly kind: string;
  /** The path behind the prefix of its API. */
  readonly path: string;
  /** Whole paths where some clients look for it. */
  readonly aliases?: readonly string[];
  /** The beginning of the ids of its answers. */
  readonly idPrefix: string;
  /** True if the body is a form with files. */
  readonly takesForm?: boolean | undefined;
  /** True if its answers can be resumed, and made once for an `Idempotency-Key`. */
  readonly isResumable?: boolean;
  /** Returns the rendering of an answer to a request. */
  rendering(asked: ReadRequest, request: RenderedRequest): Rendering;
  /** Returns the stored texts that the body names, which the reader needs. */
  lookUp?(body: Buffer, exchange: ModelExchange, dependencies: InferenceDependencies): Promise<StoredTexts | undefined>;
  /** Returns the model that a client means by the name that it sent. */
  meantModel?(name: string, key: KeyRecord, routes: RouteTable): string;
  /** Returns the cost of a request to its books, where the request has no tokens to count. */
  costOf?(asked: ReadRequest, books: readonly Book[], dependencies: InferenceDependencies): RequestCost | undefined;
  /** Returns the size of a request that is priced by seconds or images. */
  sizeOf?(asked: ReadRequest): PricedSize | undefined;
  /** Returns the maker of an answer for which no model runs. Its key pays for it as for a count of tokens. */
  countOf?(asked: ReadRequest): CountMaker | undefined;
}

export type RequestCost = Pick<ReadRequest, "promptTokens" | "tokens" | "ceiling"> & {
  /** The price of a second of a recording, whose server may report its length. */
  readonly tokensPerSecond: number | undefined;
};

export type CountMaker = (exchange: ModelExchange, dependencies: InferenceDependencies) => object | Promise<object>;

export type Incoming = FastifyRequest<{ Body: Buffer | undefined }>;

/** A request as the rendering of its answer tells of it. */
export interface RenderedRequest {
  readonly id: string;
  /** Returns the cost of an answer with this usage, in the currency; undefined where its model has no price. */
  readonly costOf: (usage: Usage) => number | undefined;
}

/** A request to an endpoint, with the connection that it came by. */
export interface ModelExchange {
  readonly endpoint: Endpoint;
  readonly incoming: Incoming;
  readonly reply: FastifyReply;
  readonly request: ModelRequest;
  /** Aborts when the client leaves. */
  readonly leaving: AbortController;
}

/** The rendering of answers in an outer API: a renderer for each run, the last bytes of a stream, and words of faults. */
export interface Rendering {
  readonly render: (head: AnswerHead, offer: JobOffer) => AnswerRenderer;
  readonly ends: StreamEnds;
  /** The media type of an answer that is sent whole; JSON unless given. */
  readonly media?: string | undefined;
  readonly adaptFault: (fault: Fault) => Fault;
  /** Returns the names of fields that the runtime of an offer does not hold. */
  readonly unheldBy?: ((offer: JobOffer) => readonly string[]) | undefined;
  /**
   * Keeps a complete answer before its last bytes leave. Returns the change of these bytes for an answer that could not be
   * kept.
   */
  readonly keep?:
    | ((keyId: KeyId, dependencies: InferenceDependencies) => Promise<((last: Uint8Array) => Uint8Array) | undefined>)
    | undefined;
}

/** The parts that requests to models need. An API that needs more declares it here, by merging this interface. */
export interface InferenceDependencies {
  readonly reader: Pick<RequestReader, "read">;
  readonly endUsers: Pick<EndUserBooks, "enter">;
  readonly runner: JobRunner;
  readonly resumer: AnswerResumer;
  readonly idempotencyRecords: IdempotencyRecords;
  readonly settlements: Settlements;
  readonly external: ReadonlySet<string>;
  /** Absent where no machine goes on with what another one began. */
  readonly continuations?: ContinuationRoom | undefined;
  readonly modelRoutes: Pick<RouteRecords, "table">;
  readonly prices: Pick<PriceRecords, "table" | "currency">;
  readonly images: Pick<ImageFetcher, "assertAllowed" | "fetchAll">;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Returns a key's salt for the caches of runtimes; absent when the operator lets keys share what machines have
   * cached.
   */
  readonly cacheSaltOf?: ((key: KeyRecord) => string) | undefined;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** The endpoint of a route that asks models. */
    endpoint?: Endpoint;
  }
}
