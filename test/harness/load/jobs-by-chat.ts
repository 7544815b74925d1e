import { connectNats } from "#shared/broker/nats-broker.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeFrame } from "#shared/protocol/frame.ts";
import { decodeJobHead, headHeader } from "#shared/protocol/job.ts";
import { parseReplySubject } from "#shared/protocol/subjects.ts";

interface SeenJob {
  readonly nonce: string;
  /** The latest frame that was not sent before, and the times of the first and of that one. */
  sequence: number;
  firstAtMs: number;
  lastAtMs: number;
}

/**
 * The jobs that make the answer of each scripted chat, and when a machine worked on each: listened to on the broker, since
 * no gateway knows the jobs of the others. A frame that is sent again is no work.
 */
export class JobsByChat implements AsyncDisposable {
  readonly #broker: Broker;
  readonly #jobs = new Map<string, SeenJob>();

  private constructor(broker: Broker) {
    this.#broker = broker;
    broker.subscribe("tl1.machine.*.*.job", ({ data, headers }) => {
      const decoded = decodeJobHead(headers?.[headHeader]);
      const nonce = /nonce=(\w+)/.exec(Buffer.from(data).toString())?.[1];
      if (decoded.outcome !== "head" || nonce === undefined || this.#jobs.has(decoded.head.id)) return;
      this.#jobs.set(decoded.head.id, { nonce, sequence: 0, firstAtMs: Infinity, lastAtMs: -Infinity });
    });
    broker.subscribe("tl1.reply.>", ({ subject, data }) => {
      const job = this.#jobs.get(parseReplySubject(subject)?.job ?? "");
      const decoded = decodeFrame(data);
      if (job === undefined || decoded.outcome !== "frame" || decoded.frame.kind !== "data") return;
      if (decoded.frame.sequence <= job.sequence) return;
      job.sequence = decoded.frame.sequence;
      job.lastAtMs = performance.now();
      job.firstAtMs = Math.min(job.firstAtMs, job.lastAtMs);
    });
  }

  static async watch(natsUrl: string): Promise<JobsByChat> {
    const log = createLog({ level: "silent", name: "watch" });
    const broker = await connectNats({ url: natsUrl, name: "watch", clock, log });
    const watch = new JobsByChat(broker);
    await broker.flush();
    return watch;
  }

  /** The chats whose answer was begun more than once, and those on which two jobs worked at the same time. */
  get remade(): { readonly again: readonly string[]; readonly atOnce: readonly string[] } {
    const begun = [...this.#jobs.values()].filter(({ sequence }) => sequence > 0);
    const again = [...Map.groupBy(begun, ({ nonce }) => nonce)].filter(([, jobs]) => jobs.length > 1);
    const overlap = (jobs: readonly SeenJob[]): boolean =>
      jobs.some((one) =>
        jobs.some((other) => one !== other && one.firstAtMs <= other.lastAtMs && other.firstAtMs <= one.lastAtMs),
      );
    return {
      again: again.map(([nonce]) => nonce),
      atOnce: again.filter(([, jobs]) => overlap(jobs)).map(([nonce]) => nonce),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#broker.close();
  }
}
