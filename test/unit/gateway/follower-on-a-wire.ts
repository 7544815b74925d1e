import { PartSender } from "../../../services/gateway/jobs/send-parts.ts";
import { encodeJson, type BeatRow, type JobState } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import { limits } from "#shared/protocol/limits.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { FrameFollower } from "../../../services/gateway/jobs/follow-frames.ts";
import type { FollowedJob, JobEvent, JobMessage, JobOutcome } from "../../../services/gateway/jobs/job-events.ts";

const tickMs = 50;
export const timing = timingAt(1);
export const end = {
  finishReason: "stop",
  usage: null,
  timings: { queuedMs: 1, firstTokenMs: 2, totalMs: 3 },
} as const;

/** A follower whose machine, connection and time are the test's; it was just submitted, at 0. */
export class FollowerOnAWire {
  /** Everything that the follower said to its machine, and `not reached` for what it said of it. */
  readonly said: string[] = [];
  /** Everything that the request's owner was told, in order. */
  readonly told: string[] = [];
  readonly outcomes: JobOutcome[] = [];
  readonly follower: FrameFollower;
  nowMs = 0;
  /** How often the follower said that the body need not be kept any more. */
  bodiesTaken = 0;
  /** Whether the machine was not heard yet since the gateway's connection came back. */
  awaited = false;
  /** What the client has not taken of what the follower passed on. */
  backlog = 0;
  #connection = { connected: true, sinceMs: 0 };

  constructor(
    options: {
      kind?: JobKind;
      partsBytes?: number;
      acceptWithinMs?: number;
      remainingMs?: number;
      creditBytes?: number;
      /** The answer is gathered, and no client's reading holds it back. */
      gathered?: boolean;
      /** The name of the request that resumes an answer of the machine. */
      resumes?: string;
    } = {},
  ) {
    const { kind = "chat", partsBytes, acceptWithinMs = timing.lostAfterMs, remainingMs = timing.jobTotalMs } = options;
    const { creditBytes = 100, gathered = false, resumes } = options;
    const { said, outcomes } = this;
    const send = (offset: number): void => void said.push(`part ${offset / limits.partBytes}`);
    const parts =
      partsBytes === undefined ? undefined : new PartSender({ body: new Uint8Array(partsBytes), timing, send });
    const job: FollowedJob = {
      kind,
      remainingMs,
      creditBytes,
      creditStepBytes: Math.min(creditBytes / 2, limits.creditStepBytes),
      acceptWithinMs,
      timing,
      resumes,
      isResumable: resumes !== undefined,
      toldTokens: undefined,
      meter: undefined,
      owner: {
        on: (event) => this.#tell(event),
        unreadBytes: () => (gathered ? undefined : this.backlog),
        hasSaid: () => true,
        hasLeft: () => false,
        countTokens: () => 0,
        mayGoOn: () => false,
      },
      send: (message) => void said.push(textOf(message)),
      said: () => void (this.bodiesTaken += 1),
      notReached: () => void said.push("not reached"),
      settled: (outcome) => void outcomes.push(outcome),
    };
    this.follower = new FrameFollower(job, 0, parts);
    job.send({ kind: "job" });
  }

  #tell(event: JobEvent): void {
    if (event.kind === "accepted" || event.kind === "end") this.told.push(event.kind);
    else if (event.kind === "data") this.told.push(Buffer.from(event.payload).toString());
    else if (event.kind === "fault") this.told.push(toldOf(event));
  }

  /** The broker says that nobody is on the machine's subject. */
  noResponders(): void {
    this.follower.noResponders(this.nowMs, { isAwaited: this.awaited });
  }

  /** What was said since this was asked last. */
  take(): string[] {
    return this.said.splice(0);
  }

  hear(kind: "accept" | "reject" | "part-ack" | "end" | "fault", payload: unknown, sequence = 0): void {
    this.follower.frame({ kind, sequence, outputTokens: 0, payload: encodeJson(payload) }, this.nowMs);
  }

  accept(state: JobState = "queued"): this {
    this.hear("accept", { state });
    return this;
  }

  data(sequence: number, text: string): void {
    this.follower.frame({ kind: "data", sequence, outputTokens: 0, payload: Buffer.from(text) }, this.nowMs);
  }

  beat(state: JobState, lastSequence: number, credit = 0): void {
    const row: BeatRow = ["job", state, 0, 0, lastSequence, credit];
    this.follower.beat(row, this.nowMs);
  }

  cut(): void {
    this.#connection = { connected: false, sinceMs: this.nowMs };
  }

  restore(): void {
    this.#connection = { connected: true, sinceMs: this.nowMs };
    this.follower.reconnected(this.nowMs);
  }

  /** Lets time pass, with a tick as often as the owner of all followers gives them. */
  pass(ms: number): void {
    for (const untilMs = this.nowMs + ms; this.nowMs < untilMs;) {
      this.nowMs += tickMs;
      this.follower.tick(this.nowMs, this.#connection);
    }
  }
}

function textOf(message: JobMessage): string {
  switch (message.kind) {
    case "attach":
      return `attach ${message.from}`;
    case "credit":
      return `credit ${message.taken} ${message.limit}`;
    case "cancel":
      return `cancel ${message.reason}`;
    case "job":
    case "probe":
    case "finish":
      return message.kind;
  }
}

/** Returns the outcome of a job as its owner is told of it. */
export function toldOf(outcome: JobOutcome): string {
  if (outcome.kind === "end") return "end";
  return `${outcome.taken ? "fault" : "not-taken"} ${outcome.fault.code}`;
}
