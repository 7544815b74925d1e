import type { Broker } from "#shared/broker/broker.ts";
import type { FaultCode } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { AcceptPayload, FaultPayload } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import type { Attach } from "#shared/protocol/job.ts";
import { type ReplyAddress, replySubject } from "#shared/protocol/subjects.ts";
import type { Job } from "./job.ts";
import type { Uplink } from "./uplink.ts";

type AttachFault = FaultPayload & { readonly code: FaultCode };

/** Time for the receipt of an answer's end, beside the round trip to the broker. */
const receiptWithinMs = 50;

interface AttachOptions {
  readonly broker: Pick<Broker, "roundTripMs">;
  readonly clock: Clock;
  readonly uplink: Uplink;
}

/** Sends the frames of jobs to the gateways that attach to them. */
export class JobAttacher {
  readonly #options: AttachOptions;

  constructor(options: AttachOptions) {
    this.#options = options;
  }

  /**
   * Sends the job's frames from number `from` on to `reply`. The gateway misses frames, or another gateway goes on with
   * the request. Returns false if the job does not go there. `again` is called for an attach that had to wait.
   */
  attach(job: Job | undefined, attach: Attach, reply: ReplyAddress, again: () => void): boolean {
    const { keyId, resumes } = attach;
    if (job === undefined || (job.head.keyId ?? "") !== keyId || (resumes !== undefined && !job.mayResume(resumes))) {
      const message = "The machine does not know this request any more.";
      this.#tell(reply, "fault", { code: "job_unknown", message });
      return false;
    }
    const { owner, counts, outbox, state, served } = job;
    if (resumes !== undefined && counts !== undefined) {
      const leftMs = this.#receiptInMs(job, reply);
      if (leftMs > 0) {
        this.#options.clock.after(leftMs, again);
        return false;
      }
      const { gateway } = reply;
      const move = { owner, gateway, countedHere: attach.countedTokens, sentTokens: outbox.sentTokens };
      if (counts.resume(resumes, move)) this.tellLost(job, { ...reply, gateway: owner });
      this.#tell(reply, "accept", { state, resumed: counts.told(served?.model.id ?? "") });
    }
    if (!job.attach(attach, reply)) {
      const message = "Part of the answer was lost between the machine and the gateway.";
      this.#tell(reply, "fault", { code: "stream_gap", message });
    }
    return true;
  }

  /**
   * Tells a gateway that it has lost a job to another one, if that is so. It may have slept when the job moved, and never
   * gets it back but by a new request of the client.
   */
  tellLost(job: Job | undefined, reply: ReplyAddress, request?: string): boolean {
    const lost = job?.counts?.lostBy(reply.gateway, request);
    if (lost === undefined) return false;
    const message = "The client resumes its answer at another gateway.";
    this.#tell(reply, "fault", { code: "job_moved", message, ...lost });
    return true;
  }

  /**
   * Returns how long a receipt of the gateway before may be under way. That gateway may have the end of the answer, and then
   * counts all of it.
   */
  #receiptInMs({ waiting, outbox }: Job, { gateway }: ReplyAddress): number {
    const { broker, clock } = this.#options;
    if (waiting === undefined || waiting === gateway) return 0;
    return (outbox.endedAtMs ?? -Infinity) + receiptWithinMs + broker.roundTripMs - clock.now();
  }

  /** Answers an attach with a frame outside the numbering. A fault in it ends no job. */
  #tell(reply: ReplyAddress, ...[kind, payload]: ["accept", AcceptPayload] | ["fault", AttachFault]): void {
    this.#options.uplink.publish(replySubject(reply), encodeFrame({ kind }, JSON.stringify(payload)));
  }
}
