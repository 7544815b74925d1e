import type { Broker } from "#shared/broker/broker.ts";
import { encodeJson, type EndPayload, type FaultPayload } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import { limits } from "#shared/protocol/limits.ts";

/**
 * The frames of one job, numbered without a hole. What is written in one turn of the event loop leaves as one data
 * frame, however many tokens it holds; the terminal frame comes after all that was written, exactly once, and is kept
 * so that it can be repeated until the gateway has it.
 */
export class FrameEmitter {
  readonly #broker: Broker;
  readonly #subject: string;
  #pending: Uint8Array[] = [];
  #sequence = 0;
  #outputTokens = 0;
  #terminal: Uint8Array | undefined;

  constructor(options: { broker: Broker; subject: string }) {
    this.#broker = options.broker;
    this.#subject = options.subject;
  }

  get lastSequence(): number {
    return this.#sequence;
  }

  get ended(): boolean {
    return this.#terminal !== undefined;
  }

  /** Frames outside the numbering: accept, reject, part-ack. */
  say(kind: "accept" | "reject" | "part-ack", payload: unknown): void {
    this.#broker.publish(this.#subject, encodeFrame({ kind }, [encodeJson(payload)]));
  }

  write(bytes: Uint8Array, outputTokens: number): void {
    if (this.ended || bytes.byteLength === 0) return;
    if (this.#pending.length === 0) setImmediate(() => this.#flush());
    this.#pending.push(bytes);
    this.#outputTokens = outputTokens;
  }

  end(payload: EndPayload): void {
    this.#finish("end", payload);
  }

  fault(payload: FaultPayload): void {
    this.#finish("fault", payload);
  }

  repeatTerminal(): void {
    if (this.#terminal !== undefined) this.#broker.publish(this.#subject, this.#terminal);
  }

  #finish(kind: "end" | "fault", payload: EndPayload | FaultPayload): void {
    if (this.ended) return;
    this.#flush();
    this.#sequence += 1;
    const head = { kind, sequence: this.#sequence, outputTokens: this.#outputTokens };
    this.#terminal = encodeFrame(head, [encodeJson(payload)]);
    this.repeatTerminal();
  }

  #flush(): void {
    if (this.#pending.length === 0) return;
    const pending = this.#pending;
    this.#pending = [];
    for (const chunks of framesOf(pending)) {
      this.#sequence += 1;
      const head = { kind: "data", sequence: this.#sequence, outputTokens: this.#outputTokens } as const;
      this.#broker.publish(this.#subject, encodeFrame(head, chunks));
    }
  }
}

/** Groups chunks into frames of at most `dataFrameBytesMax`, cutting a chunk that alone is larger. */
function framesOf(chunks: readonly Uint8Array[]): Uint8Array[][] {
  const frames: Uint8Array[][] = [];
  let frame: Uint8Array[] = [];
  let room = limits.dataFrameBytesMax;
  for (const chunk of chunks) {
    let rest = chunk;
    while (rest.byteLength > 0) {
      const piece = rest.subarray(0, room);
      frame.push(piece);
      room -= piece.byteLength;
      rest = rest.subarray(piece.byteLength);
      if (room > 0) continue;
      frames.push(frame);
      frame = [];
      room = limits.dataFrameBytesMax;
    }
  }
  if (frame.length > 0) frames.push(frame);
  return frames;
}
