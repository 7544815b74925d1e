import { beatPayload, decodeJson } from "#shared/protocol/frame-payload.ts";
import { decodeFrame, isTerminal, type FrameKind } from "#shared/protocol/frame.ts";
import { parseReplySubject } from "#shared/protocol/subjects.ts";
import { NatsMessages, type NatsMessageSeen } from "./nats-messages.ts";
import type { Direction, Inspector } from "./tcp-proxy.ts";

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
  readonly nonce: string | undefined;
  /** How often the job itself came: a gateway repeats one that is not accepted. */
  times: number;
  /** What the last beat told of it. */
  progress: number;
  readonly frames: FrameSeen[];
}

/** What a trap waits for: a job on its way to the machine, or one of its frames on the way back. */
export type Passing = "job" | "accept" | "data" | "terminal";

interface Trap {
  readonly nonce: string;
  readonly passing: Passing;
  readonly holds: boolean;
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
    const messages = new NatsMessages();
    const see = direction === "back" ? this.#seeJob.bind(this) : this.#seeFrame.bind(this);
    return (chunk) => {
      for (const message of messages.push(chunk)) {
        if (see(message)) return message.beginsAt;
      }
      return undefined;
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
   * it is held in the proxy until it is released.
   */
  next(passing: Passing, { nonce, holds = false }: { nonce: string; holds?: boolean }): Promise<JobSeen> {
    return new Promise((resolve) => {
      const trap: Trap = {
        nonce,
        passing,
        holds,
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
    if (role !== "machine" || channel !== "job" || reply === undefined) return false;
    const about = parseReplySubject(reply);
    if (about === undefined) return false;
    const known = this.#jobs.get(about.job);
    const seen = known ?? {
      ...about,
      kind: /^tl-kind: *(\w+)/im.exec(headers)?.[1] ?? "unknown",
      nonce: nonceIn(payload),
      times: 0,
      progress: 0,
      frames: [],
    };
    this.#jobs.set(about.job, seen);
    seen.times += 1;
    return this.#spring("job", seen);
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
    const sprung = [...this.#traps].filter((trap) => trap.passing === passing && trap.nonce === seen.nonce);
    for (const trap of sprung) trap.sprung(seen);
    return sprung.some(({ holds }) => holds);
  }
}

function nonceIn(body: Buffer): string | undefined {
  const begin = body.toString("latin1", 0, lookedAtBytes);
  const end = body.toString("latin1", Math.max(0, body.byteLength - lookedAtBytes));
  return /\bnonce=([\w-]+)/.exec(`${begin}\n${end}`)?.[1];
}
