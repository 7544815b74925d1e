import type { Clock } from "#shared/process/clock.ts";
import { encodeJson, type EndPayload, type FaultPayload } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";
import { ReplayBuffer } from "./replay-buffer.ts";
import type { Uplink, UplinkSender } from "./uplink.ts";

interface EmitterOptions {
  readonly uplink: Uplink;
  readonly clock: Pick<Clock, "now">;
  readonly subject: string;
  /** Bytes that may be sent before the first credit. Undefined means no bound and no replay. */
  readonly credit: number | undefined;
}

interface Terminal {
  readonly kind: "end" | "fault";
  readonly payload: EndPayload | FaultPayload;
}

/** Ends an event in the answer shapes that are event streams. */
const eventEnd = "\n\n";
/** Bounds an event that is still sent in one piece on a full line. */
const thinUncutBytesMax = 16 * 1024;

/**
 * Emits the frames of one job, numbered without a gap. Bytes written in one turn of the event loop leave as one data
 * frame, however many tokens they hold. The gateway's credit and the room on the uplink bound them. Bytes that waited
 * leave joined. The terminal frame follows all written bytes, exactly once. Sent frames are kept until the client has
 * read them, so that lost frames can be sent again.
 *
 * A frame ends where an event ends, so that a later fault can be sent as an event of its own. The exceptions are events
 * larger than half the credit, or larger than a full uplink carries in one piece.
 */
export class FrameEmitter implements UplinkSender {
  readonly #uplink: Uplink;
  readonly #clock: Pick<Clock, "now">;
  readonly #replay: ReplayBuffer | undefined;
  /** Once the client has read everything, the credit always covers this many bytes. */
  readonly #uncutBytesMax: number;
  /** Bytes that the answer may be ahead of what its client has read. */
  readonly #window: number;
  #subject: string;
  #limit: number;
  #offset = 0;
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
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
  #silent = true;
  #ending: Terminal | undefined;
  #terminal: Uint8Array | undefined;
  #terminalAtMs: number | undefined;
  #room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  constructor({ uplink, clock, subject, credit }: EmitterOptions) {
    this.#uplink = uplink;
    this.#clock = clock;
    this.#subject = subject;
    this.#window = credit ?? Infinity;
    this.#limit = this.#window;
    this.#uncutBytesMax = Math.min(this.#limit / 2, limits.dataFrameBytesMax);
    this.#replay = credit === undefined ? undefined : new ReplayBuffer();
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  /** True until the first frame of this job is sent. */
  get silent(): boolean {
    return this.#silent;
  }

  get isFresh(): boolean {
    return this.#sequence === 0;
  }

  /** The credit limit in bytes; 0 where there is no bound. */
  get credit(): number {
    return Number.isFinite(this.#limit) ? this.#limit : 0;
  }

  /** When the terminal frame was sent. Undefined while frames before it are still to be sent again. */
  get endedAtMs(): number | undefined {
    return this.#againFrom === undefined ? this.#terminalAtMs : undefined;
  }

  /** True while the answer is ahead of the gateway's credit. */
  get heldBack(): boolean {
    return this.#terminal === undefined && this.#offset + this.#pendingBytes > this.#limit;
  }

  /** Sends a frame outside the numbering: accept, reject, part-ack. */
  say(kind: "accept" | "reject" | "part-ack", payload: unknown): void {
    this.#silent = false;
    this.#uplink.publish(this.#subject, encodeFrame({ kind }, [encodeJson(payload)]));
  }

  /** Takes a piece of the answer. The caller awaits the returned promise, if any, before it writes more. */
  write(bytes: Uint8Array, outputTokens: number): Promise<void> | undefined {
    if (this.#ending !== undefined || bytes.byteLength === 0) return undefined;
    this.#pending.push(bytes);
    this.#pendingBytes += bytes.byteLength;
    this.#outputTokens = outputTokens;
    if (this.#offset < this.#limit) this.#enqueue();
    if (!this.heldBack) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  end(payload: EndPayload): void {
    this.#finish({ kind: "end", payload });
  }

  /** Ends the job with a fault. With `dropping`, bytes that are not sent yet are discarded. */
  fault(payload: FaultPayload, { dropping = false } = {}): void {
    if (dropping && this.#ending === undefined) this.#drop();
    this.#finish({ kind: "fault", payload });
  }

  /**
   * Publishes the terminal frame again, unless the uplink is full: it may still hold the first copy, and has no room
   * for two.
   */
  repeatTerminal(): void {
    if (this.#terminal !== undefined && !this.#uplink.isFull) this.#uplink.publish(this.#subject, this.#terminal);
  }

  /**
   * Applies a credit: the client has read `taken` bytes, and the gateway takes frames up to `limit`. Both only grow.
   */
  grant(credit: { readonly taken: number; readonly limit: number }): void {
    this.#replay?.taken(Math.min(credit.taken, this.#offset));
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
    this.#drop();
    this.#replay?.clear();
  }

  /**
   * Sends all frames from this number on again, and every later frame to this subject. Frames that may still be on
   * their way to the broker are not repeated; a gateway that misses them attaches again. Returns false and sends
   * nothing when one of the frames is no longer kept.
   */
  attach(to: { readonly subject: string; readonly from: number; readonly credit: number }): boolean {
    const oldest = this.#replay?.first ?? Infinity;
    if (to.from <= this.#sequence && to.from < oldest) return false;
    const isElsewhere = to.subject !== this.#subject;
    this.#subject = to.subject;
    const wasSentBelow = this.#againFrom ?? this.#sequence + 1;
    if (to.from > wasSentBelow) this.#againFrom = to.from > this.#sequence ? undefined : to.from;
    else if (isElsewhere || to.from <= this.#drained(wasSentBelow - 1)) this.#sendAgainFrom(to.from);
    else this.#uplink.measure();
    this.grant({ taken: 0, limit: to.credit });
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

  #finish(terminal: Terminal): void {
    if (this.#ending !== undefined) return;
    this.#ending = terminal;
    this.#enqueue();
  }

  #drop(): void {
    this.#pending = [];
    this.#pendingBytes = 0;
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
    const { first = Infinity } = this.#replay ?? {};
    let next = Math.max(this.#againFrom ?? 0, first);
    for (let sent = 0; sent < bytesMax && next <= this.#sequence; next += 1) {
      const frame = this.#replay?.frame(next);
      // The frame is not kept. A gateway that misses it attaches again and learns so from the fault.
      if (frame === undefined) next = this.#sequence + 1;
      if (frame === undefined) break;
      this.#publish(next, frame);
      sent += frame.byteLength;
    }
    this.#againFrom = next <= this.#sequence ? next : undefined;
    if (this.#againFrom === undefined && this.#terminal !== undefined) this.#terminalAtMs = this.#clock.now();
    return this.#againFrom !== undefined || this.#canSend;
  }

  get #canSend(): boolean {
    if (this.#pendingBytes > 0) return this.#offset < this.#limit;
    return this.#ending !== undefined && this.#terminal === undefined;
  }

  #sendNew(bytesMax: number): boolean {
    const creditBytes = this.#limit - this.#offset;
    if (this.#pendingBytes > 0 && creditBytes > 0) {
      const chunks = this.#take(Math.min(bytesMax, limits.dataFrameBytesMax), creditBytes);
      if (chunks.length === 0) return false;
      this.#send("data", chunks);
    }
    if (!this.heldBack) {
      this.#room?.resolve();
      this.#room = undefined;
    }
    if (this.#pendingBytes > 0) return this.#canSend;
    if (this.#ending === undefined || this.#terminal !== undefined) return false;
    this.#terminal = this.#send(this.#ending.kind, [encodeJson(this.#ending.payload)]);
    this.#terminalAtMs = this.#clock.now();
    return false;
  }

  #send(kind: "data" | "end" | "fault", chunks: readonly Uint8Array[]): Uint8Array {
    this.#sequence += 1;
    const frame = encodeFrame({ kind, sequence: this.#sequence, outputTokens: this.#outputTokens }, chunks);
    this.#silent = false;
    const endOffset = kind === "data" ? this.#offset : Infinity;
    this.#replay?.keep({ sequence: this.#sequence, frame, endOffset });
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

  /**
   * Takes about `bytesMax` pending bytes, within the credit. One event is taken whole even if it is larger. Returns
   * nothing when it is better to wait for more credit than to cut an event.
   */
  #take(bytesMax: number, creditBytes: number): readonly Uint8Array[] {
    let room = Math.min(bytesMax, creditBytes);
    if (this.#pendingBytes <= room) return this.#takeAll();
    const chunks: Uint8Array[] = [];
    let whole = 0;
    let taken = 0;
    for (const chunk of this.#pending) {
      if (chunk.byteLength > room) break;
      chunks.push(chunk);
      room -= chunk.byteLength;
      taken += chunk.byteLength;
      whole += 1;
    }
    const rest = this.#pending[whole];
    const cutAt = rest === undefined ? 0 : this.#cutAt(rest, { room, bytesMax, creditBytes, isFirst: whole === 0 });
    if (rest !== undefined && cutAt > 0) {
      chunks.push(rest.subarray(0, cutAt));
      taken += cutAt;
      if (cutAt === rest.byteLength) whole += 1;
      else this.#pending[whole] = rest.subarray(cutAt);
    }
    this.#pending.splice(0, whole);
    this.#pendingBytes -= taken;
    this.#offset += taken;
    return chunks;
  }

  #takeAll(): readonly Uint8Array[] {
    const all = this.#pending;
    this.#offset += this.#pendingBytes;
    this.#drop();
    return all;
  }

  /**
   * Returns how many bytes to take of a chunk that does not fit. Takes whole events, the first one even beyond `room`.
   * Takes a piece of an event that is too large, and 0 bytes to wait for more credit.
   */
  #cutAt(
    chunk: Uint8Array,
    at: { readonly room: number; readonly bytesMax: number; readonly creditBytes: number; readonly isFirst: boolean },
  ): number {
    const { room, bytesMax, creditBytes, isFirst } = at;
    if (room === 0) return 0;
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lastEnd = room < eventEnd.length ? -1 : bytes.lastIndexOf(eventEnd, room - eventEnd.length);
    if (lastEnd >= 0) return lastEnd + eventEnd.length;
    if (!isFirst) return 0;
    const uncutBytesMax = Math.min(this.#uncutBytesMax, Math.max(bytesMax, thinUncutBytesMax));
    const firstEnd = bytes.subarray(0, uncutBytesMax).indexOf(eventEnd);
    if (firstEnd < 0 && bytes.byteLength > uncutBytesMax) return room;
    const eventBytes = firstEnd < 0 ? bytes.byteLength : firstEnd + eventEnd.length;
    return eventBytes <= creditBytes ? eventBytes : 0;
  }
}
