import type { Clock } from "#shared/process/clock.ts";
import type { EndPayload, FaultPayload } from "#shared/protocol/frame-payload.ts";
import { beginOf, type DataRecord, encodeFrame, openRecord, piecesOf, recordTextMax } from "#shared/protocol/frame.ts";
import type { Attach, JobHead } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
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

/** A record's head, length and colon, whatever its length. */
const openBytesMax = "t:".length + String(recordTextMax).length;

/** A record that waits, or a piece of one that is longer than `recordTextMax`. */
interface WaitingRecord {
  readonly head: DataRecord["head"] | undefined;
  /** The head, length and colon. Empty for a piece of a long record, which goes out as it is. */
  open: string;
  text: string;
  /** The bytes of `open` and `text`. */
  bytes: number;
}

/**
 * Sends the frames of one job, numbered without a gap. Records written in one turn of the event loop leave as one data
 * frame, however many tokens they hold. The gateway's credit and the room on the uplink bound them. While the uplink is
 * full, adjacent texts are joined, so that a thin line carries text and not heads. The terminal frame follows all
 * records, exactly once. Sent frames are kept until the client has read them, so that lost frames can be sent again.
 */
export class Outbox implements UplinkSender {
  /** The number of the last frame sent. */
  lastSequence = 0;
  /** True until the first frame of this job is sent. */
  isSilent = true;
  /** The tokens of the answer so far, and those of them in the frames sent so far. */
  outputTokens = 0;
  sentTokens = 0;
  readonly #uplink: Uplink;
  readonly #clock: Pick<Clock, "now">;
  readonly #isWhole: boolean;
  /** True if all frames are kept, up to `resumableBytes`, for a client that resumes the answer. */
  readonly #keepsAll: boolean;
  /** Bytes that the answer may be ahead of what its client has read. Without a bound, no frame is sent again. */
  readonly #window: number;
  /** The records that are not sent yet, and the bytes that they take in frames. */
  #waiting: WaitingRecord[] = [];
  #waitingBytes = 0;
  #kept: KeptFrame[] = [];
  #subject: string;
  #limit: number;
  #offset = 0;
  /** True while this outbox waits for its turn on the uplink. */
  #isEnqueued = false;
  /** The frames that are sent again before new ones. */
  #again: KeptFrame[] = [];
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
    return this.#again.length === 0 ? this.#ended?.sentAtMs : undefined;
  }

  /** True while the answer is ahead of the gateway's credit. */
  get isHeldBack(): boolean {
    return this.#ended === undefined && this.#offset + this.#waitingBytes > this.#limit;
  }

  /** Sends a frame outside the numbering: accept, reject, part-ack. */
  say(kind: "accept" | "reject" | "part-ack", payload: unknown): void {
    this.isSilent = false;
    this.#uplink.publish(this.#subject, encodeFrame({ kind }, JSON.stringify(payload)));
  }

  /** Takes a part of the answer. The caller awaits the returned promise, if any, before it writes more. */
  write(records: readonly DataRecord[], outputTokens: number): Promise<void> | undefined {
    if (this.#ending !== undefined || records.length === 0) return undefined;
    const isJoining = this.#isWhole || this.#uplink.isFull;
    for (const record of records) this.#await(record, isJoining);
    this.outputTokens = outputTokens;
    const { isHeldBack } = this;
    const isDue = !this.#isWhole || isHeldBack || this.#waitingBytes >= wholeFrameBytes;
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
    this.#waiting = [];
    this.#waitingBytes = 0;
  }

  /** Discards everything: the gateway needs no more frames, new or repeated. */
  release(): void {
    this.drop();
    this.#kept = [];
    this.#again = [];
  }

  /** Publishes the terminal frame again, unless the uplink is full: it may still hold the first copy. */
  repeatTerminal(): void {
    if (this.#ended !== undefined && !this.#uplink.isFull) this.#uplink.publish(this.#subject, this.#ended.frame);
  }

  /**
   * Applies a credit: the client has read `taken` bytes, and the gateway takes frames up to `limit`. Both only grow. A lease
   * tells `taken` alone: the answer may be a full window ahead of it.
   */
  grant({ taken, limit = Math.min(taken, this.#offset) + this.#window }: { taken: number; limit?: number }): void {
    const unread = this.isResumable ? 0 : this.#kept.findIndex(({ endOffset }) => endOffset > taken);
    if (unread !== 0) this.#kept = unread < 0 ? [] : this.#kept.slice(unread);
    if (limit <= this.#limit) return;
    this.#limit = limit;
    this.#enqueue();
  }

  /**
   * Sends all frames from number `from` on again, and every later frame to `subject`. Frames that may still be on their
   * way to the broker are not repeated for the same gateway, unless a client resumes the answer there: a gateway that
   * misses them attaches again. Returns false and sends nothing when one of the frames is no longer kept.
   */
  attach({ from, credit, resumes }: Pick<Attach, "from" | "credit" | "resumes">, subject: string): boolean {
    const again = this.#kept.filter(({ sequence }) => sequence >= from);
    const [first] = again;
    if (from <= this.lastSequence && first?.sequence !== from) return false;
    const isElsewhere = resumes !== undefined || subject !== this.#subject;
    this.#subject = subject;
    // A replay that is under way may skip frames.
    const isLater = from >= (this.#again[0]?.sequence ?? this.lastSequence + 1);
    if (isLater || isElsewhere || first === undefined || first.position <= this.#uplink.drainedBytes) {
      this.#again = again;
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
    if (this.#again.length > 0) return this.#sendAgain(bytesMax);
    this.#isEnqueued = false;
    if (this.#waitingBytes > 0) {
      const written = this.#take(Math.min(bytesMax, limits.dataFrameBytesMax), this.#limit - this.#offset);
      // The first record does not fit: the next credit covers it.
      if (written === "") return false;
      this.#offset += Buffer.byteLength(written);
      this.#send("data", written);
    }
    if (this.#room !== undefined && !this.isHeldBack) {
      this.#room.resolve();
      this.#room = undefined;
    }
    if (this.#waitingBytes === 0 && this.#ending !== undefined && this.#ended === undefined) {
      const frame = this.#send(this.#ending.kind, JSON.stringify(this.#ending.payload));
      this.#ended = { frame, sentAtMs: this.#clock.now() };
    }
    this.#isEnqueued = this.#waitingBytes > 0 && this.#offset < this.#limit;
    return this.#isEnqueued;
  }

  #enqueue(): void {
    if (this.#isEnqueued) return;
    this.#isEnqueued = true;
    this.#uplink.enqueue(this);
  }

  #sendAgain(bytesMax: number): boolean {
    let leftBytes = bytesMax;
    while (leftBytes > 0) {
      const kept = this.#again.shift();
      if (kept === undefined) break;
      this.#uplink.publish(this.#subject, kept.frame);
      kept.position = this.#uplink.publishedBytes;
      leftBytes -= kept.frame.byteLength;
    }
    if (this.#again.length === 0 && this.#ended !== undefined) this.#ended.sentAtMs = this.#clock.now();
    // New frames follow in the next turn.
    return true;
  }

  #send(kind: "data" | "end" | "fault", payload: string): Uint8Array {
    const sequence = (this.lastSequence += 1);
    const frame = encodeFrame({ kind, sequence, outputTokens: this.outputTokens }, payload);
    this.isSilent = false;
    this.sentTokens = this.outputTokens;
    this.#uplink.publish(this.#subject, frame);
    const position = this.#uplink.publishedBytes;
    const endOffset = kind === "data" ? this.#offset : Infinity;
    if (this.#window < Infinity) this.#kept.push({ sequence, frame, endOffset, position });
    return frame;
  }

  /** Adds a record to those that wait. With `isJoining`, a text becomes part of the text before it. */
  #await(record: DataRecord, isJoining: boolean): void {
    const { head, text } = record;
    const last = isJoining && isText(record) ? this.#waiting.at(-1) : undefined;
    if (text.length > recordTextMax) {
      for (const piece of piecesOf(openRecord(record) + text)) this.#add(undefined, "", piece);
    } else if (last?.head === head && last.text.length + text.length <= recordTextMax) {
      last.text += text;
      const open = openRecord({ head, text: last.text });
      const moreBytes = open.length - last.open.length + Buffer.byteLength(text);
      last.open = open;
      last.bytes += moreBytes;
      this.#waitingBytes += moreBytes;
    } else this.#add(head, openRecord(record), text);
  }

  #add(head: WaitingRecord["head"], open: string, text: string): void {
    const bytes = open.length + Buffer.byteLength(text);
    this.#waiting.push({ head, open, text, bytes });
    this.#waitingBytes += bytes;
  }

  /**
   * Takes waiting records in their written form, up to `creditBytes` and about `bytesMax`. A text that is too long for both
   * is cut. Another record is taken even beyond `bytesMax` when it is the first. Returns an empty text when no record fits.
   */
  #take(bytesMax: number, creditBytes: number): string {
    let room = Math.min(bytesMax, creditBytes);
    let written = "";
    let taken = 0;
    for (const record of this.#waiting) {
      if (record.bytes > room && isText(record)) {
        written += this.#cut(record, room);
        break;
      }
      if (record.bytes > room && (taken > 0 || record.bytes > creditBytes)) break;
      written += record.open + record.text;
      room -= record.bytes;
      this.#waitingBytes -= record.bytes;
      taken += 1;
    }
    this.#waiting = taken === this.#waiting.length ? [] : this.#waiting.slice(taken);
    return written;
  }

  /** Takes the beginning of a text as a record of its own, in at most this many bytes. */
  #cut(record: WaitingRecord & { readonly head: "t" | "r" }, room: number): string {
    const { head, text, bytes } = record;
    const begin = beginOf(text, room - openBytesMax);
    if (begin === "") return "";
    record.text = text.slice(begin.length);
    record.open = openRecord(record);
    record.bytes = record.open.length + Buffer.byteLength(record.text);
    this.#waitingBytes += record.bytes - bytes;
    return openRecord({ head, text: begin }) + begin;
  }
}

function isText<Of extends Pick<WaitingRecord, "head">>(record: Of): record is Of & { readonly head: "t" | "r" } {
  return record.head === "t" || record.head === "r";
}
