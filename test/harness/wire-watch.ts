import { beatPayload, decodeJson } from "#shared/protocol/frame-payload.ts";
import { decodeFrame, isTerminal, type FrameKind } from "#shared/protocol/frame.ts";
import { decodeJobHead, decodePartHead, headHeader } from "#shared/protocol/job.ts";
import { parseReplySubject } from "#shared/protocol/subjects.ts";
import type { NatsMessageSeen } from "./nats-messages.ts";
import type { Direction, Inspector } from "./tcp-proxy.ts";
import { MachineMessages } from "./tunnel-messages.ts";

/** One frame as it left a machine. */
export interface FrameSeen {
  readonly kind: FrameKind;
  readonly sequence: number;
  readonly atMs: number;
  /** Empty for data, of which there is much. */
  readonly payload: Buffer;
}

/** One job of one machine, as it was seen on the machine's own way to the broker. */
export interface JobSeen {
  readonly job: string;
  readonly machine: string;
  readonly gateway: string;
  readonly kind: string;
  /** Of the script line in its body, if that has one. */
  nonce: string | undefined;
  /** How many parts of its body came. */
  parts: number;
  /** How often the job itself came: a gateway repeats one that is not accepted. */
  times: number;
  /** What the last beat told of it. */
  progress: number;
  readonly frames: FrameSeen[];
}

/** What a trap waits for: a job on its way to the machine, a part of its body, or one of its frames on the way back. */
export type Passing = "job" | "part" | "accept" | "data" | "terminal";

interface Trap {
  readonly nonce: string;
  readonly passing: Passing;
  readonly holds: boolean;
  readonly nth: number;
  readonly sprung: (seen: JobSeen) => void;
}

/** Long bodies have their script line at their end or their beginning; this much is looked at. */
const lookedAtBytes = 65_536;

const nothing = Buffer.alloc(0);

/**
 * Watches what passes between machines and the broker, in proxies that are told to: the ledger of what really was given
 * to machines and what they sent, and the means to hit a request at an exact place of its way. Nothing is subscribed for
 * it, which would hide from the gateway that nobody is there.
 */
export class WireWatch {
  readonly #jobs = new Map<string, JobSeen>();
  readonly #traps = new Set<Trap>();

  /** For `TcpProxy.before`, in front of the broker on the way of one machine. */
  readonly inspect = (direction: Direction): Inspector => {
    const messages = new MachineMessages();
    const see = direction === "back" ? this.#seeJob.bind(this) : this.#seeFrame.bind(this);
    return (chunk) => {
      // All of a chunk is noted, also what is held behind the first message that is to be.
      const held = messages.push(chunk).filter(see);
      return held[0]?.beginsAt;
    };
  };

  get jobs(): readonly JobSeen[] {
    return [...this.#jobs.values()];
  }

  /** All that was done about the request with this nonce, in the order in which machines got it. */
  jobsOf(nonce: string): readonly JobSeen[] {
    return this.jobs.filter((job) => job.nonce === nonce);
  }

  /**
   * Resolves with the job when the next such message of this request passes. With `holds`, that message and all behind
   * it is held in the proxy until it is released. Of the parts of a body it is the `nth`.
   */
  next(
    passing: Passing,
    { nonce, holds = false, nth = 1 }: { nonce: string; holds?: boolean; nth?: number },
  ): Promise<JobSeen> {
    return new Promise((resolve) => {
      const trap: Trap = {
        nonce,
        passing,
        holds,
        nth,
        sprung: (seen) => {
          this.#traps.delete(trap);
          resolve(seen);
        },
      };
      this.#traps.add(trap);
    });
  }

  #seeJob({ subject, reply, headers, payload }: NatsMessageSeen): boolean {
    const [, role, , , channel] = subject.split(".");
    if (role === "machine" && channel === "part") return this.#seePart(headers, payload);
    if (role !== "machine" || channel !== "job" || reply === undefined) return false;
    const about = parseReplySubject(reply);
    if (about === undefined) return false;
    const known = this.#jobs.get(about.job);
    const seen = known ?? {
      ...about,
      kind: kindIn(headers),
      nonce: nonceIn(payload),
      parts: 0,
      times: 0,
      progress: 0,
      frames: [],
    };
    this.#jobs.set(about.job, seen);
    seen.times += 1;
    return this.#spring("job", seen);
  }

  /** A body that comes in parts tells its nonce in one of them. */
  #seePart(headers: string, payload: Buffer): boolean {
    const part = decodePartHead(headIn(headers));
    const seen = part.outcome === "head" ? this.#jobs.get(part.head.id) : undefined;
    if (seen === undefined) return false;
    seen.nonce ??= nonceIn(payload);
    seen.parts += 1;
    return this.#spring("part", seen);
  }

  #seeFrame({ subject, payload: bytes }: NatsMessageSeen): boolean {
    const about = parseReplySubject(subject);
    if (about?.job === "beats") this.#seeBeat(bytes);
    const seen = about === undefined ? undefined : this.#jobs.get(about.job);
    if (seen === undefined) return false;
    const decoded = decodeFrame(bytes);
    if (decoded.outcome !== "frame") return false;
    const { kind, sequence } = decoded.frame;
    const payload = kind === "data" ? nothing : Buffer.from(decoded.frame.payload);
    seen.frames.push({ kind, sequence, atMs: performance.now(), payload });
    if (kind === "accept" || kind === "data") return this.#spring(kind, seen);
    return isTerminal(kind) && this.#spring("terminal", seen);
  }

  #seeBeat(bytes: Buffer): void {
    const decoded = decodeFrame(bytes);
    const beat = decoded.outcome === "frame" ? decodeJson(beatPayload, decoded.frame.payload) : undefined;
    for (const [job, , , progress] of beat?.rows ?? []) {
      const seen = this.#jobs.get(job);
      if (seen !== undefined) seen.progress = progress;
    }
  }

  /** Whether this message is to be held. */
  #spring(passing: Passing, seen: JobSeen): boolean {
    const isMet = ({ passing: awaited, nonce, nth }: Trap): boolean =>
      awaited === passing && nonce === seen.nonce && (passing !== "part" || seen.parts >= nth);
    const sprung = [...this.#traps].filter(isMet);
    for (const trap of sprung) trap.sprung(seen);
    return sprung.some(({ holds }) => holds);
  }
}

function kindIn(headers: string): string {
  const job = decodeJobHead(headIn(headers));
  return job.outcome === "head" ? job.head.kind : "unknown";
}

function headIn(headers: string): string | undefined {
  return new RegExp(`^${headHeader}: *(.*)$`, "im").exec(headers)?.[1]?.trim();
}

function nonceIn(body: Buffer): string | undefined {
  const begin = body.toString("latin1", 0, lookedAtBytes);
  const end = body.toString("latin1", Math.max(0, body.byteLength - lookedAtBytes));
  return /\bnonce=([\w-]+)/.exec(`${begin}\n${end}`)?.[1];
}
