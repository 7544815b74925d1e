import { connectNats } from "#shared/broker/nats-broker.ts";
import type { Broker } from "#shared/broker/broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { decodeFrame, isTerminal } from "#shared/protocol/frame.ts";
import { parseReplySubject } from "#shared/protocol/subjects.ts";

/**
 * Which jobs each machine has accepted and not yet said a word of: listened to on the broker, since nobody else knows it
 * at once. While it listens, beats for a gateway that is gone find somebody, so it is not for tests of that.
 */
export class JobsBeforeTheirFirstToken implements AsyncDisposable {
  readonly #broker: Broker;
  readonly #machines = new Map<string, Set<string>>();

  private constructor(broker: Broker) {
    this.#broker = broker;
    broker.subscribe("tl1.reply.>", ({ subject, data }) => {
      const named = parseReplySubject(subject);
      const decoded = decodeFrame(data);
      if (named === undefined || decoded.outcome !== "frame") return;
      const jobs = this.#of(named.machine);
      const { kind } = decoded.frame;
      if (kind === "accept") jobs.add(named.job);
      else if (kind === "data" || isTerminal(kind)) jobs.delete(named.job);
    });
  }

  static async watch(natsUrl: string): Promise<JobsBeforeTheirFirstToken> {
    const log = createLog({ level: "silent", name: "watch" });
    const broker = await connectNats({ url: natsUrl, name: "watch", clock, log });
    const watch = new JobsBeforeTheirFirstToken(broker);
    await broker.flush();
    return watch;
  }

  on(machine: string): number {
    return this.#of(machine).size;
  }

  /** For one that was killed with them: how many it took with it. */
  forget(machine: string): number {
    const jobs = this.#of(machine);
    const { size } = jobs;
    jobs.clear();
    return size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#broker.close();
  }

  #of(machine: string): Set<string> {
    const jobs = this.#machines.get(machine) ?? new Set();
    this.#machines.set(machine, jobs);
    return jobs;
  }
}
