import type { Broker } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";
import { atTurnEnd } from "#shared/process/turn-end.ts";
import { encodeJson, type EndPayload, type FaultPayload } from "#shared/protocol/frame-payload.ts";
import { encodeFrame, framePrefixBytes, writeFramePrefix } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";
import { ReplayBuffer } from "./replay-buffer.ts";

interface EmitterOptions {
  readonly broker: Broker;
  readonly clock: Pick<Clock, "now">;
  readonly subject: string;
  /** How many bytes may be sent before the first credit; without it there is no bound, and no replay. */
  readonly credit: number | undefined;
}

interface Terminal {
  readonly kind: "end" | "fault";
  readonly payload: EndPayload | FaultPayload;
}

/** Where an event ends in the shapes that are streams of events. */
const eventEnd = "\n\n";

/**
 * The frames of one job, numbered without a hole. What is written in one turn of the event loop leaves as one data
 * frame, however many tokens it holds, as far as the gateway gives credit for it; the terminal frame comes after all that
 * was written, exactly once. What was sent is kept until the client has it, so that what is lost on the way can be sent
 * again. A frame ends where an event does, unless one is larger than half the credit: whatever fails after it can then be
 * told as an event of its own.
 */
export class FrameEmitter {
  readonly #broker: Broker;
  readonly #clock: Pick<Clock, "now">;
  readonly #replay: ReplayBuffer | undefined;
  /** There is always credit for so much once the client has taken all. */
  readonly #uncutBytesMax: number;
  /** How far the answer may be ahead of what its client took. */
  readonly #window: number;
  #subject: string;
  #limit: number;
  #offset = 0;
  #pending: Uint8Array[] = [];
  /** All that is pending, where that came with room for the prefix. */
  #draft: Uint8Array | undefined;
  #pendingBytes = 0;
  #flushing = false;
  #sequence = 0;
  #outputTokens = 0;
  #silent = true;
  #ending: Terminal | undefined;
  #terminal: Uint8Array | undefined;
  #terminalAtMs: number | undefined;
  #room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  constructor({ broker, clock, subject, credit }: EmitterOptions) {
    this.#broker = broker;
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

  /** Nothing was told of this job yet. */
  get silent(): boolean {
    return this.#silent;
  }

  /** The credit that is known here; 0 where none is asked for. */
  get credit(): number {
    return Number.isFinite(this.#limit) ? this.#limit : 0;
  }

  /** When the terminal frame was sent for the first time. */
  get endedAtMs(): number | undefined {
    return this.#terminalAtMs;
  }

  /** More of the answer is there than the gateway gave credit for. */
  get heldBack(): boolean {
    return this.#terminal === undefined && this.#offset + this.#pendingBytes > this.#limit;
  }

  /** Frames outside the numbering: accept, reject, part-ack. */
  say(kind: "accept" | "reject" | "part-ack", payload: unknown): void {
    this.#silent = false;
    this.#broker.publish(this.#subject, encodeFrame({ kind }, [encodeJson(payload)]));
  }

  /** Takes a piece of the answer. What it returns, if anything, is to be waited for before there is more. */
  write(bytes: Uint8Array, outputTokens: number): Promise<void> | undefined {
    if (this.#ending !== undefined || bytes.byteLength === 0) return undefined;
    this.#undraft();
    this.#pending.push(bytes);
    return this.#written(bytes.byteLength, outputTokens);
  }

  /** The same for a piece that comes with room for a prefix before it: if nothing else leaves with it, it is the frame. */
  writeDraft(draft: Uint8Array, outputTokens: number): Promise<void> | undefined {
    if (this.#ending !== undefined || draft.byteLength === framePrefixBytes) return undefined;
    if (this.#pendingBytes === 0) this.#draft = draft;
    else {
      this.#undraft();
      this.#pending.push(draft.subarray(framePrefixBytes));
    }
    return this.#written(draft.byteLength - framePrefixBytes, outputTokens);
  }

  end(payload: EndPayload): void {
    this.#finish({ kind: "end", payload });
  }

  /** With `dropping`, nobody wants what has not been sent yet. */
  fault(payload: FaultPayload, { dropping = false } = {}): void {
    if (dropping && this.#ending === undefined) this.#drop();
    this.#finish({ kind: "fault", payload });
  }

  repeatTerminal(): void {
    if (this.#terminal !== undefined) this.#broker.publish(this.#subject, this.#terminal);
  }

  /** The client has taken this many bytes, and the gateway takes frames up to that limit. Both only ever grow. */
  grant(credit: { readonly taken: number; readonly limit: number }): void {
    this.#replay?.taken(Math.min(credit.taken, this.#offset));
    if (credit.limit <= this.#limit) return;
    this.#limit = credit.limit;
    this.#flush();
  }

  /** The client has taken this many bytes, and the answer may go on as far beyond that as it might at first. */
  taken(bytes: number): void {
    const taken = Math.min(bytes, this.#offset);
    this.grant({ taken, limit: taken + this.#window });
  }

  /** The gateway has all that it wants, and nothing is sent again. */
  release(): void {
    this.#replay?.clear();
  }

  /**
   * Sends everything from this number on once more, and to this subject from now on. False when some of it is not kept:
   * then nothing is sent.
   */
  attach(to: { readonly subject: string; readonly from: number; readonly credit: number }): boolean {
    const again = to.from > this.#sequence ? [] : this.#replay?.from(to.from);
    if (again === undefined) return false;
    this.#subject = to.subject;
    for (const frame of again) this.#broker.publish(this.#subject, frame);
    this.grant({ taken: 0, limit: to.credit });
    return true;
  }

  #written(bytes: number, outputTokens: number): Promise<void> | undefined {
    this.#pendingBytes += bytes;
    this.#outputTokens = outputTokens;
    this.#flushSoon();
    if (!this.heldBack) return undefined;
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  #undraft(): void {
    if (this.#draft === undefined) return;
    this.#pending.push(this.#draft.subarray(framePrefixBytes));
    this.#draft = undefined;
  }

  #finish(terminal: Terminal): void {
    if (this.#ending !== undefined) return;
    this.#ending = terminal;
    this.#flush();
  }

  #drop(): void {
    this.#pending = [];
    this.#draft = undefined;
    this.#pendingBytes = 0;
  }

  #flushSoon(): void {
    if (this.#flushing || this.#offset >= this.#limit) return;
    this.#flushing = true;
    atTurnEnd(this);
  }

  /** What was written in this turn leaves. */
  atTurnEnd(): void {
    this.#flushing = false;
    this.#flush();
  }

  #flush(): void {
    if (this.#draft !== undefined) this.#sendDraft(this.#draft);
    while (this.#pendingBytes > 0 && this.#offset < this.#limit) {
      const chunks = this.#take(Math.min(limits.dataFrameBytesMax, this.#limit - this.#offset));
      if (chunks.length === 0) break;
      this.#send("data", chunks);
    }
    if (!this.heldBack) {
      this.#room?.resolve();
      this.#room = undefined;
    }
    if (this.#pendingBytes > 0 || this.#ending === undefined || this.#terminal !== undefined) return;
    this.#terminal = this.#send(this.#ending.kind, [encodeJson(this.#ending.payload)]);
    this.#terminalAtMs = this.#clock.now();
  }

  #sendDraft(draft: Uint8Array): void {
    if (this.#pendingBytes > Math.min(limits.dataFrameBytesMax, this.#limit - this.#offset)) {
      this.#undraft();
      return;
    }
    this.#draft = undefined;
    this.#offset += this.#pendingBytes;
    this.#pendingBytes = 0;
    this.#sequence += 1;
    writeFramePrefix(draft, { kind: "data", sequence: this.#sequence, outputTokens: this.#outputTokens });
    this.#sendFrame("data", draft);
  }

  #send(kind: "data" | "end" | "fault", chunks: readonly Uint8Array[]): Uint8Array {
    this.#sequence += 1;
    const frame = encodeFrame({ kind, sequence: this.#sequence, outputTokens: this.#outputTokens }, chunks);
    this.#sendFrame(kind, frame);
    return frame;
  }

  #sendFrame(kind: "data" | "end" | "fault", frame: Uint8Array): void {
    this.#silent = false;
    const endOffset = kind === "data" ? this.#offset : Infinity;
    this.#replay?.keep({ sequence: this.#sequence, frame, endOffset });
    this.#broker.publish(this.#subject, frame);
  }

  /** Takes up to so many bytes of what waits; nothing when it is better to wait for more credit than to cut it. */
  #take(bytesMax: number): readonly Uint8Array[] {
    if (this.#pendingBytes <= bytesMax) return this.#takeAll();
    const chunks: Uint8Array[] = [];
    let room = bytesMax;
    let whole = 0;
    for (const chunk of this.#pending) {
      if (chunk.byteLength > room) break;
      chunks.push(chunk);
      room -= chunk.byteLength;
      whole += 1;
    }
    const rest = this.#pending[whole];
    const cutAt = rest === undefined ? 0 : this.#cutAt(rest, room, whole === 0);
    if (rest !== undefined && cutAt > 0) {
      chunks.push(rest.subarray(0, cutAt));
      room -= cutAt;
      this.#pending[whole] = rest.subarray(cutAt);
    }
    this.#pending.splice(0, whole);
    this.#pendingBytes -= bytesMax - room;
    this.#offset += bytesMax - room;
    return chunks;
  }

  #takeAll(): readonly Uint8Array[] {
    const all = this.#pending;
    this.#offset += this.#pendingBytes;
    this.#drop();
    return all;
  }

  /** How much of a chunk that does not fit goes along: whole events, or of an event that is too large what there is room for. */
  #cutAt(chunk: Uint8Array, room: number, isFirst: boolean): number {
    if (room === 0) return 0;
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lastEnd = room < eventEnd.length ? -1 : bytes.lastIndexOf(eventEnd, room - eventEnd.length);
    if (lastEnd >= 0) return lastEnd + eventEnd.length;
    const ofOneEvent = bytes.subarray(0, this.#uncutBytesMax);
    const isTooLarge = bytes.byteLength > this.#uncutBytesMax && !ofOneEvent.includes(eventEnd);
    return isFirst && isTooLarge ? room : 0;
  }
}
