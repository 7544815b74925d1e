import type { Broker } from "#shared/broker/broker.ts";
import { encodeJson, type BeatPayload } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import { beatsSubject, echoSubject } from "#shared/protocol/subjects.ts";
import type { JobTable } from "./job-table.ts";

/**
 * One beat to each gateway that has jobs here, in silence and in flow: it says that the agent lives, how each job
 * stands and which frame was its last, so that a lost tail shows. Its reply subject makes the broker tell when the
 * gateway is gone.
 */
export function sendBeats(options: { broker: Broker; machine: string; epoch: string; jobs: JobTable }): void {
  const { broker, machine, epoch, jobs } = options;
  for (const [gateway, rows] of jobs.rows()) {
    const beat: BeatPayload = { epoch, rows };
    broker.publish(beatsSubject({ gateway, machine }), encodeFrame({ kind: "beat" }, [encodeJson(beat)]), {
      reply: echoSubject({ machine, epoch }, gateway),
    });
  }
}
