import type { Clock } from "#shared/process/clock.ts";
import { encodeJson, type EndPayload, type FaultPayload } from "#shared/protocol/frame-payload.ts";
import { type DataRecord, openRecord, piecesOf, recordTextMax, encodeFrame } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";
import type { Uplink, UplinkSender } from "./uplink.ts";

interface EmitterOptions {
  readonly uplink: Uplink;
  readonly clock: Pick<Clock, "now">;
  readonly subject: string;
  /** Bytes that may be sent before the first credit. Undefined means no bound and no replay. */
  readonly credit: number | undefined;
  /** True if the client gets the answer in one piece: it may leave in few large frames. */
  readonly whole?: boolean | undefined;
  /** True if all frames are kept, up to `resumableBytes`, for a client that resumes the answer. */
  readonly keepsAll?: boolean | undefined;
}

/** The receiver of the frames from a number on. */
interface Attachment {
  readonly subject: string;
  readonly from: number;
  readonly credit: number;
  /** True if a client resumes the answer there. */
  readonly resumes?: boolean;
}

/** The course of an answer: open while records come, ending until all of them are sent, then ended by its terminal frame. */
type Phase =
  | { readonly name: "open" }
  | { readonly name: "ending"; readonly kind: "end" | "fault"; readonly payload: EndPayload | FaultPayload }
  | { readonly name: "ended"; readonly kind: "end" | "fault"; readonly frame: Uint8Array; sentAtMs: number };

/** An answer that its client gets in one piece waits until it fills a frame of this size, or ends. */
const wholeFrameBytes = 32 * 1024;

/**
 * Emits the frames of one job, numbered without a gap. Records written in one turn of the event loop leave as one data
 * frame, however many tokens they hold. The gateway's credit and the room on the uplink bound them. While the uplink is
 * full, adjacent texts are joined, so that a thin line carries text and not heads. The terminal frame follows all
 * records, exactly once. Sent frames are kept until the client has read them, so that lost frames can be sent again.
 */
export class FrameEmitter implements UplinkSender {
  readonly #uplink: Uplink;
  readonly #clock: Pick<Clock, "now">;
  /** Sent frames that the client has not read, in order. The gateway's credit bounds their size. */
  #kept: { readonly sequence: number; readonly frame: Uint8Array; readonly endOffset: number }[] = [];
  readonly #whole: boolean;
  readonly #keepsAll: boolean;
  /** Bytes that the answer may be ahead of what its client has read. Without a bound, no frame is sent again. */
  readonly #window: number;
  #subject: string;
  #limit: number;
  #offset = 0;
  readonly #pending = new PendingRecords();
  /** True while this emitter waits for its turn on the uplink. */
  #enqueued = false;
  #sequence = 0;
  /** The next frame to send again. Undefined when no replay is under way. */
  #againFrom: number | undefined;
  /** The broker has all frames up to this number. */
  #drainedSequence = 0;
  /** The broker has all frames up to `#markSequence` once the uplink has drained to `#markPosition`. */
  #markSequence = 0;
  #markPosition = 0;
  /** The broker has the latest frame once the uplink has drained to this position. */
  #sentPosition = 0;
  #outputTokens = 0;
  #sentTokens = 0;
  #silent = true;
  #phase: Phase = { name: "open" };
  #room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  constructor({ uplink, clock, subject, credit, whole = false, keepsAll = false }: EmitterOptions) {
    this.#uplink = uplink;
    this.#clock = clock;
    this.#subject = subject;
    this.#window = credit ?? Infinity;
    this.#limit = this.#window;
    this.#whole = whole;
    this.#keepsAll = keepsAll;
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  /** True until the first frame of this job is sent. */
  get silent(): boolean {
    return this.#silent;
  }

  /** The tokens of the answer in the frames sent so far. */
  get sentTokens(): number {
    return this.#sentTokens;
  }

  /** True if a client can still get the answer from its beginning on. A job that failed without a part of it has none. */
  get isResumable(): boolean {
    const hasFailed = this.#phase.name !== "open" && this.#phase.kind === "fault";
    return this.#keepsAll && !(hasFailed && this.#offset === 0) && this.#offset <= limits.resumableBytes;
  }

  get isFresh(): boolean {
    return this.#sequence === 0;
  }

  /** The credit limit in bytes; 0 where there is no bound. */
  get credit(): number {
    return Number.isFinite(this.#limit) ? this.#limit : 0;
  }

  /** The time at which the terminal frame was sent. Undefined while frames before it are still to be sent again. */
  get endedAtMs(): number | undefined {
    return this.#againFrom === undefined && this.#phase.name === "ended" ? this.#phase.sentAtMs : undefined;
  }

  /** True while the answer is ahead of the gateway's credit. */
  get heldBack(): boolean {
    return this.#phase.name !== "ended" && this.#offset + this.#pending.bytes > this.#limit;
  }

  /** Sends a frame outside the numbering: accept, reject, part-ack. */
  say(kind: "accept" | "reject" | "part-ack", payload: unknown): void {
    this.#silent = false;
    this.#uplink.publish(this.#subject, encodeFrame({ kind }, encodeJson(payload)));
  }

  /** Takes a part of the answer. The caller awaits the returned promise, if any, before it writes more. */
  write(records: readonly DataRecord[], outputTokens: number): Promise<void> | undefined {
    if (this.#phase.name !== "open" || records.length === 0) return undefined;
    const joining = this.#whole || this.#uplink.isFull;
    for (const record of records) this.#pending.push(record, joining);
    this.#outputTokens = outputTokens;
    const isDue = !this.#whole || this.#pending.bytes >= wholeFrameBytes || this.heldBack;
    if (isDue && this.#offset < this.#limit) this.#enqueue();
    if (!this.heldBack) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  end(payload: EndPayload): void {
    this.#finish({ name: "ending", kind: "end", payload });
  }

  /** Ends the job with a fault. With `dropping`, records that are not sent yet are discarded. */
  fault(payload: FaultPayload, { dropping = false } = {}): void {
    if (dropping && this.#phase.name === "open") this.#pending.clear();
    this.#finish({ name: "ending", kind: "fault", payload });
  }

  /**
   * Publishes the terminal frame again, unless the uplink is full: it may still hold the first copy, and has no room
   * for two.
   */
  repeatTerminal(): void {
    if (this.#phase.name === "ended" && !this.#uplink.isFull) this.#uplink.publish(this.#subject, this.#phase.frame);
  }

  /**
   * Applies a credit: the client has read `taken` bytes, and the gateway takes frames up to `limit`. Both only grow.
   */
  grant(credit: { readonly taken: number; readonly limit: number }): void {
    const taken = Math.min(credit.taken, this.#offset);
    const unread = this.isResumable ? 0 : this.#kept.findIndex(({ endOffset }) => endOffset > taken);
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

  /** Discards everything: the gateway needs no more frames, new or repeated. */
  release(): void {
    this.#againFrom = undefined;
    this.#pending.clear();
    this.#kept = [];
  }

  /**
   * Sends all frames from this number on again, and every later frame to this subject. Frames that may still be on
   * their way to the broker are not repeated for the same gateway, unless a client resumes the answer there: a gateway that
   * misses them attaches again. Returns false and sends nothing when one of the frames is no longer kept.
   */
  attach({ subject, from, credit, resumes = false }: Attachment): boolean {
    if (from <= this.#sequence && from < this.#oldestKept) return false;
    const isElsewhere = resumes || subject !== this.#subject;
    this.#subject = subject;
    const wasSentBelow = this.#againFrom ?? this.#sequence + 1;
    if (from > wasSentBelow) this.#againFrom = from > this.#sequence ? undefined : from;
    else if (isElsewhere || from <= this.#drained(wasSentBelow - 1)) this.#sendAgainFrom(from);
    else this.#uplink.measure();
    // The gateway that resumes the answer knows nothing of what others granted.
    if (resumes) this.#limit = credit;
    this.grant({ taken: 0, limit: credit });
    return true;
  }

  /**
   * Sends about `bytesMax` bytes: repeated frames, then new ones, then the terminal frame. Returns true when more can
   * be sent at once.
   */
  sendTurn(bytesMax: number): boolean {
    this.#enqueued = false;
    const more = this.#againFrom !== undefined ? this.#sendAgain(bytesMax) : this.#sendNew(bytesMax);
    this.#enqueued = more;
    return more;
  }

  #finish(ending: Phase & { readonly name: "ending" }): void {
    if (this.#phase.name !== "open") return;
    this.#phase = ending;
    this.#enqueue();
  }

  get #oldestKept(): number {
    return this.#kept[0]?.sequence ?? Infinity;
  }

  #enqueue(): void {
    if (this.#enqueued) return;
    this.#enqueued = true;
    this.#uplink.enqueue(this);
  }

  #sendAgainFrom(sequence: number): void {
    if (sequence > this.#sequence) return;
    this.#againFrom = sequence;
    this.#drainedSequence = this.#markSequence = sequence - 1;
    this.#markPosition = 0;
    this.#enqueue();
  }

  #sendAgain(bytesMax: number): boolean {
    const oldest = this.#oldestKept;
    let next = Math.max(this.#againFrom ?? 0, oldest);
    for (let sent = 0; sent < bytesMax && next <= this.#sequence; next += 1) {
      const { frame } = this.#kept[next - oldest] ?? {};
      if (frame === undefined) break;
      this.#publish(next, frame);
      sent += frame.byteLength;
    }
    this.#againFrom = next <= this.#sequence ? next : undefined;
    if (this.#againFrom === undefined && this.#phase.name === "ended") this.#phase.sentAtMs = this.#clock.now();
    return this.#againFrom !== undefined || this.#canSend;
  }

  get #canSend(): boolean {
    if (this.#pending.bytes > 0) return this.#offset < this.#limit;
    return this.#phase.name === "ending";
  }

  #sendNew(bytesMax: number): boolean {
    if (this.#pending.bytes > 0) {
      const creditBytes = this.#limit - this.#offset;
      const payload = Buffer.from(this.#pending.take(Math.min(bytesMax, limits.dataFrameBytesMax), creditBytes));
      // The first record does not fit: the next credit covers it.
      if (payload.byteLength === 0) return false;
      this.#offset += payload.byteLength;
      this.#send("data", payload);
    }
    if (!this.heldBack) {
      this.#room?.resolve();
      this.#room = undefined;
    }
    if (this.#pending.bytes > 0) return this.#canSend;
    if (this.#phase.name !== "ending") return false;
    const { kind, payload } = this.#phase;
    const frame = this.#send(kind, encodeJson(payload));
    this.#phase = { name: "ended", kind, frame, sentAtMs: this.#clock.now() };
    return false;
  }

  #send(kind: "data" | "end" | "fault", payload: Uint8Array): Uint8Array {
    this.#sequence += 1;
    const frame = encodeFrame({ kind, sequence: this.#sequence, outputTokens: this.#outputTokens }, payload);
    this.#silent = false;
    this.#sentTokens = this.#outputTokens;
    const endOffset = kind === "data" ? this.#offset : Infinity;
    if (this.#window < Infinity) this.#kept.push({ sequence: this.#sequence, frame, endOffset });
    this.#publish(this.#sequence, frame);
    return frame;
  }

  #publish(sequence: number, frame: Uint8Array): void {
    const uplink = this.#uplink;
    uplink.publish(this.#subject, frame);
    this.#sentPosition = uplink.publishedBytes;
    if (uplink.drainedBytes < this.#markPosition) return;
    this.#drainedSequence = this.#markSequence;
    this.#markSequence = sequence;
    this.#markPosition = this.#sentPosition;
  }

  /** Returns the last number up to which the broker has all frames. `lastSent` is the latest number that was sent. */
  #drained(lastSent: number): number {
    const { drainedBytes } = this.#uplink;
    if (drainedBytes >= this.#sentPosition) return lastSent;
    return drainedBytes >= this.#markPosition ? Math.min(this.#markSequence, lastSent) : this.#drainedSequence;
  }
}

/** A record that waits, or a piece of one that is longer than `recordTextMax`. */
interface Pending {
  /** Undefined for a piece of a long record: its text goes out as it is. */
  readonly head: DataRecord["head"] | undefined;
  text: string;
  /** The bytes of `text`, without those that open the record. */
  textBytes: number;
}

/** A record's head, length and colon, whatever its length. */
const openBytesMax = "t:".length + String(recordTextMax).length;

const encoder = new TextEncoder();

/** The records of one job that are not sent yet. */
export class PendingRecords {
  #waiting: Pending[] = [];
  #bytes = 0;

  /** The bytes that all of them take in frames. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a record. With `joining`, a text becomes part of the text before it. */
  push(record: DataRecord, joining: boolean): void {
    const { head, text } = record;
    if (text.length > recordTextMax) {
      for (const piece of piecesOf(openRecord(record) + text)) this.#add(undefined, piece);
      return;
    }
    const last = joining && isText(head) ? this.#waiting.at(-1) : undefined;
    if (last === undefined || last.head !== head || last.text.length + text.length > recordTextMax) {
      this.#add(head, text);
      return;
    }
    this.#bytes -= sizeOf(last);
    last.text += text;
    last.textBytes += Buffer.byteLength(text);
    this.#bytes += sizeOf(last);
  }

  /**
   * Takes records in their written form, up to `creditBytes` and about `bytesMax`. A text that is too long for both is
   * cut. Another record is taken even beyond `bytesMax` when it is the first. Returns an empty text when no record fits.
   */
  take(bytesMax: number, creditBytes: number): string {
    let room = Math.min(bytesMax, creditBytes);
    let written = "";
    let taken = 0;
    for (const pending of this.#waiting) {
      const bytes = sizeOf(pending);
      if (bytes > room) {
        if (isText(pending.head)) written += this.#cut(pending, room);
        if (isText(pending.head) || taken > 0 || bytes > creditBytes) break;
      }
      written += writtenOf(pending.head, pending.text);
      room -= bytes;
      this.#bytes -= bytes;
      taken += 1;
    }
    if (taken === this.#waiting.length) this.#waiting = [];
    else this.#waiting.splice(0, taken);
    return written;
  }

  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
  }

  #add(head: Pending["head"], text: string): void {
    const pending = { head, text, textBytes: Buffer.byteLength(text) };
    this.#waiting.push(pending);
    this.#bytes += sizeOf(pending);
  }

  /** Takes the beginning of a text as a record of its own, in at most this many bytes. */
  #cut(pending: Pending, room: number): string {
    if (room <= openBytesMax) return "";
    const { read, written } = encoder.encodeInto(pending.text, new Uint8Array(room - openBytesMax));
    if (read === 0) return "";
    const begin = writtenOf(pending.head, pending.text.slice(0, read));
    this.#bytes -= sizeOf(pending);
    pending.text = pending.text.slice(read);
    pending.textBytes -= written;
    this.#bytes += sizeOf(pending);
    return begin;
  }
}

function isText(head: Pending["head"]): boolean {
  return head === "t" || head === "r";
}

function writtenOf(head: Pending["head"], text: string): string {
  return head === undefined ? text : openRecord({ head, text }) + text;
}

function sizeOf({ head, text, textBytes }: Pending): number {
  if (head === undefined) return textBytes;
  return "t:".length + String(text.length).length + textBytes;
}
