import type { Clock } from "#shared/process/clock.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import { machineName, tokenText } from "#shared/protocol/identifiers.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import type { Roster } from "../fleet/roster.ts";
import { resumedChosen } from "../routing/rank-machines.ts";
import type { AnswerCourse } from "./answer-course.ts";
import type { Attempt, JobOffer } from "./answer-parts.ts";
import { answerNotFound } from "./machine-fault.ts";
import type { OpenJobs } from "./open-jobs.ts";

/** The job that makes an answer, and its machine. */
export interface AnswerJob {
  readonly machine: string;
  readonly job: string;
}

/** A position in an answer: its job, and the number of the latest event that the client has. */
export interface AnswerPosition extends AnswerJob {
  readonly event: number;
}

/** Returns the id of an event, by which its client resumes the answer after it. */
export function eventId({ machine, job, event }: AnswerPosition): string {
  return `${machine}.${job}.${event}`;
}

/** Reads an id of an event. Undefined for any other text. */
export function readEventId(id: string): AnswerPosition | undefined {
  const [machine = "", job = "", number = "", ...rest] = id.split(".");
  const isOne = machineName.safeParse(machine).success && tokenText.test(job) && /^\d{1,9}$/.test(number);
  return isOne && rest.length === 0 ? { machine, job, event: Number(number) } : undefined;
}

/** Waits a moment, for another request or for a machine. Rejects when the client has left. */
export type Wait = () => Promise<void>;

interface ResumerParts {
  readonly jobs: OpenJobs;
  readonly roster: Roster;
  readonly catalogues: Catalogues;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** A request that resumes an answer. */
interface Resuming {
  readonly position: AnswerPosition;
  readonly keyId: string;
  readonly course: AnswerCourse;
  readonly signal: AbortSignal;
}

/** Returns the job of an answer that its client resumes: its machine tells what it is when it accepts. */
export function resumedJob(course: AnswerCourse, offerOf: (modelId: string) => JobOffer | undefined): Attempt {
  const nothing = (): void => undefined;
  return {
    accepted(resumed) {
      const offer = resumed && offerOf(resumed.model);
      if (resumed !== undefined && offer !== undefined) course.onResumed(offer, resumed);
    },
    begun: nothing,
    said: nothing,
    over: nothing,
    mayGoOn: () => false,
  };
}

/**
 * Follows a job that another request gave to its machine, for a client that lost that request. The machine knows the job
 * by its id and its key, so any gateway can do this, and no other key can.
 */
export class AnswerResumer {
  readonly #parts: ResumerParts;

  constructor(parts: ResumerParts) {
    this.#parts = parts;
  }

  /** Waits until the machine of an answer is there. Returns false if it is gone for good: nothing came of it for `onceForMs`. */
  async isThere({ machine }: AnswerPosition, wait: Wait): Promise<boolean> {
    const { jobs, roster, timing, clock } = this.#parts;
    const sinceMs = clock.now();
    for (;;) {
      const nowMs = clock.now();
      const { presence, status = "offline", heardAtMs = sinceMs } = roster.find(machine, nowMs) ?? {};
      if (status !== "offline") return true;
      const isSilent = !jobs.line.wasAway && nowMs - heardAtMs > timing.onceForMs;
      if (isSilent || presence?.state === "gone") return false;
      await wait();
    }
  }

  /** Returns the machine that gives an answer. Throws if no such machine is there. */
  machineOf({ machine }: AnswerPosition): Presence {
    const { jobs, roster, clock } = this.#parts;
    jobs.assertConnection();
    const found = roster.find(machine, clock.now());
    if (found === undefined) throw answerNotFound();
    return found.presence;
  }

  async run({ position, keyId, course, signal }: Resuming): Promise<EndPayload> {
    const { jobs, catalogues, timing } = this.#parts;
    const { job } = position;
    const presence = this.machineOf(position);
    const attempt = resumedJob(course, (modelId) => {
      const model = catalogues.of(presence).find(({ id }) => id === modelId);
      return model && { job, chosen: resumedChosen(presence, model), next: [] };
    });
    course.attempts(attempt);
    const outcome = await jobs.run({
      target: presence,
      head: { id: job, kind: "chat", keyId, remainingMs: timing.jobTotalMs },
      body: new Uint8Array(),
      resumes: true,
      owner: course,
      signal,
    });
    if (outcome.kind === "end") return outcome.end;
    throw outcome.fault;
  }
}
