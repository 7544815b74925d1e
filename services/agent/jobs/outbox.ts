import type { Clock } from "#shared/process/clock.ts";
import { encodeJson, type EndPayload, type FaultPayload } from "#shared/protocol/frame-payload.ts";
import { type DataRecord, encodeFrame } from "#shared/protocol/frame.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { WaitingRecords } from "./answer-records.ts";
import type { Uplink, UplinkSender } from "./uplink.ts";

/** A frame that the client has not read. `position` is its end on the uplink when it was sent last. */
interface KeptFrame {
  readonly sequence: number;
  readonly frame: Uint8Array;
  readonly endOffset: number;
  position: number;
}

/** An answer that its client gets in one piece waits until it fills a frame of this size, or ends. */
const wholeFrameBytes = 32 * 1024;

/**
 * Sends the frames of one job, numbered without a gap. Records written in one turn of the event loop leave as one data
 * frame, however many tokens they hold. The gateway's credit and the room on the uplink bound them. While the uplink is
 * full, adjacent texts are joined, so that a thin line carries text and not heads. The terminal frame follows all
 * records, exactly once. Sent frames are kept until the client has read them, so that lost frames can be sent again.
 */
export class Outbox implements UplinkSender {
  readonly #uplink: Uplink;
  readonly #clock: Pick<Clock, "now">;
  readonly #isWhole: boolean;
  /** True if all frames are kept, up to `resumableBytes`, for a client that resumes the answer. */
  readonly #keepsAll: boolean;
  /** Bytes that the answer may be ahead of what its client has read. Without a bound, no frame is sent again. */
  readonly #window: number;
  readonly #waiting = new WaitingRecords();
  #kept: KeptFrame[] = [];
  #subject: string;
  #limit: number;
  #offset = 0;
  /** True while this outbox waits for its turn on the uplink. */
  #isEnqueued = false;
  #sequence = 0;
  /** The next frame to send again. Undefined when no replay is under way. */
  #againFrom: number | undefined;
  #outputTokens = 0;
  #sentTokens = 0;
  #isSilent = true;
  /** The terminal frame, which follows all records; and the same frame once it was sent. */
  #ending: { readonly kind: "end" | "fault"; readonly payload: EndPayload | FaultPayload } | undefined;
  #ended: { readonly frame: Uint8Array; sentAtMs: number } | undefined;
  #room: PromiseWithResolvers<void> | undefined;

  constructor(
    { credit = Infinity, whole = false, resumable }: Pick<JobHead, "credit" | "whole" | "resumable">,
    { uplink, clock, subject }: { uplink: Uplink; clock: Pick<Clock, "now">; subject: string },
  ) {
    this.#uplink = uplink;
    this.#clock = clock;
    this.#subject = subject;
    this.#window = this.#limit = credit;
    this.#isWhole = whole;
    this.#keepsAll = resumable !== undefined;
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  get isFresh(): boolean {
    return this.#sequence === 0;
  }

  /** True until the first frame of this job is sent. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** The tokens of the answer in the frames sent so far. */
  get sentTokens(): number {
    return this.#sentTokens;
  }

  /** True if a client can still get the answer from its beginning on. A job that failed without a part of it has none. */
  get isResumable(): boolean {
    const hasOnlyFailed = this.#ending?.kind === "fault" && this.#offset === 0;
    return this.#keepsAll && !hasOnlyFailed && this.#offset <= limits.resumableBytes;
  }

  /** The credit limit in bytes; 0 where there is no bound. */
  get credit(): number {
    return Number.isFinite(this.#limit) ? this.#limit : 0;
  }

  /** The time at which the terminal frame was sent. Undefined while frames before it are still to be sent again. */
  get endedAtMs(): number | undefined {
    return this.#againFrom === undefined ? this.#ended?.sentAtMs : undefined;
  }

  /** True while the answer is ahead of the gateway's credit. */
  get isHeldBack(): boolean {
    return this.#ended === undefined && this.#offset + this.#waiting.bytes > this.#limit;
  }

  /** Sends a frame outside the numbering: accept, reject, part-ack. */
  say(kind: "accept" | "reject" | "part-ack", payload: unknown): void {
    this.#isSilent = false;
    this.#uplink.publish(this.#subject, encodeFrame({ kind }, encodeJson(payload)));
  }

  /** Takes a part of the answer. The caller awaits the returned promise, if any, before it writes more. */
  write(records: readonly DataRecord[], outputTokens: number): Promise<void> | undefined {
    if (this.#ending !== undefined || records.length === 0) return undefined;
    const isJoining = this.#isWhole || this.#uplink.isFull;
    for (const record of records) this.#waiting.push(record, isJoining);
    this.#outputTokens = outputTokens;
    const { isHeldBack } = this;
    const isDue = !this.#isWhole || isHeldBack || this.#waiting.bytes >= wholeFrameBytes;
    if (isDue && this.#offset < this.#limit) this.#enqueue();
    if (!isHeldBack) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  /** Ends the job. Later ends of the same job are ignored. */
  end(kind: "end" | "fault", payload: EndPayload | FaultPayload): void {
    if (this.#ending !== undefined) return;
    this.#ending = { kind, payload };
    this.#enqueue();
  }

  /** Discards the records that are not sent yet. */
  drop(): void {
    if (this.#ending === undefined) this.#waiting.clear();
  }

  /** Discards everything: the gateway needs no more frames, new or repeated. */
  release(): void {
    this.#againFrom = undefined;
    this.#waiting.clear();
    this.#kept = [];
  }

  /**
   * Publishes the terminal frame again, unless the uplink is full: it may still hold the first copy, and has no room
   * for two.
   */
  repeatTerminal(): void {
    if (this.#ended !== undefined && !this.#uplink.isFull) this.#uplink.publish(this.#subject, this.#ended.frame);
  }

  /**
   * Applies a credit: the client has read `taken` bytes, and the gateway takes frames up to `limit`. Both only grow.
   */
  grant(credit: { readonly taken: number; readonly limit: number }): void {
    const unread = this.isResumable ? 0 : this.#kept.findIndex(({ endOffset }) => endOffset > credit.taken);
    if (unread !== 0) this.#kept = unread < 0 ? [] : this.#kept.slice(unread);
    if (credit.limit <= this.#limit) return;
    this.#limit = credit.limit;
    this.#enqueue();
  }

  /** Applies a lease's count of bytes that the client has read. The answer may be a full window ahead of it. */
  taken(bytes: number): void {
    const taken = Math.min(bytes, this.#offset);
    this.grant({ taken, limit: taken + this.#window });
  }

  /**
   * Sends all frames from number `from` on again, and every later frame to `subject`. Frames that may still be on their
   * way to the broker are not repeated for the same gateway, unless a client resumes the answer there: a gateway that
   * misses them attaches again. Returns false and sends nothing when one of the frames is no longer kept.
   */
  attach(
    {
      from,
      credit,
      resumes,
    }: { readonly from: number; readonly credit: number; readonly resumes?: string | undefined },
    subject: string,
  ): boolean {
    const oldest = this.#kept[0]?.sequence ?? Infinity;
    if (from <= this.#sequence && from < oldest) return false;
    const isElsewhere = resumes !== undefined || subject !== this.#subject;
    this.#subject = subject;
    const { position = Infinity } = this.#kept[from - oldest] ?? {};
    if (from >= (this.#againFrom ?? this.#sequence + 1)) this.#againFrom = from > this.#sequence ? undefined : from;
    else if (isElsewhere || position <= this.#uplink.drainedBytes) {
      this.#againFrom = from;
      this.#enqueue();
    } else this.#uplink.measure();
    // The gateway that resumes the answer knows nothing of what others granted.
    if (resumes !== undefined) this.#limit = credit;
    this.grant({ taken: 0, limit: credit });
    return true;
  }

  /**
   * Sends about `bytesMax` bytes: repeated frames, then new ones, then the terminal frame. Returns true when more can
   * be sent at once.
   */
  sendTurn(bytesMax: number): boolean {
    this.#isEnqueued = this.#againFrom === undefined ? this.#sendNew(bytesMax) : this.#sendAgain(bytesMax);
    return this.#isEnqueued;
  }

  #enqueue(): void {
    if (this.#isEnqueued) return;
    this.#isEnqueued = true;
    this.#uplink.enqueue(this);
  }

  #sendAgain(bytesMax: number): boolean {
    let at = Math.max(0, (this.#againFrom ?? 0) - (this.#kept[0]?.sequence ?? 0));
    let sent = 0;
    for (let kept = this.#kept[at]; kept !== undefined && sent < bytesMax; kept = this.#kept[(at += 1)]) {
      kept.position = this.#publish(kept.frame);
      sent += kept.frame.byteLength;
    }
    this.#againFrom = this.#kept[at]?.sequence;
    if (this.#againFrom === undefined && this.#ended !== undefined) this.#ended.sentAtMs = this.#clock.now();
    return this.#againFrom !== undefined || this.#canSend;
  }

  get #canSend(): boolean {
    if (this.#waiting.bytes > 0) return this.#offset < this.#limit;
    return this.#ending !== undefined && this.#ended === undefined;
  }

  #sendNew(bytesMax: number): boolean {
    if (this.#waiting.bytes > 0) {
      const creditBytes = this.#limit - this.#offset;
      const payload = Buffer.from(this.#waiting.take(Math.min(bytesMax, limits.dataFrameBytesMax), creditBytes));
      // The first record does not fit: the next credit covers it.
      if (payload.byteLength === 0) return false;
      this.#offset += payload.byteLength;
      this.#send("data", payload);
    }
    if (this.#room !== undefined && !this.isHeldBack) {
      this.#room.resolve();
      this.#room = undefined;
    }
    if (this.#waiting.bytes > 0) return this.#offset < this.#limit;
    if (this.#ending === undefined || this.#ended !== undefined) return false;
    const frame = this.#send(this.#ending.kind, encodeJson(this.#ending.payload));
    this.#ended = { frame, sentAtMs: this.#clock.now() };
    return false;
  }

  #send(kind: "data" | "end" | "fault", payload: Uint8Array): Uint8Array {
    this.#sequence += 1;
    const frame = encodeFrame({ kind, sequence: this.#sequence, outputTokens: this.#outputTokens }, payload);
    this.#isSilent = false;
    this.#sentTokens = this.#outputTokens;
    const position = this.#publish(frame);
    const endOffset = kind === "data" ? this.#offset : Infinity;
    if (this.#window < Infinity) this.#kept.push({ sequence: this.#sequence, frame, endOffset, position });
    return frame;
  }

  #publish(frame: Uint8Array): number {
    this.#uplink.publish(this.#subject, frame);
    return this.#uplink.publishedBytes;
  }
}
