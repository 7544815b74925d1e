import { encodeJson, type BeatPayload } from "#shared/protocol/frame-payload.ts";
import { encodeFrame } from "#shared/protocol/frame.ts";
import { beatsSubject, echoSubject } from "#shared/protocol/subjects.ts";
import type { JobTable } from "./job-table.ts";

/**
 * Sends one beat to each gateway that has jobs here, whether or not answers flow. A beat shows that the agent is alive,
 * the state of each job and the number of its last frame. The gateway detects lost last frames by that number. The
 * beat's reply subject makes the broker report a gateway that is gone.
 */
export function sendBeats(options: { machine: string; epoch: string; jobs: JobTable }): void {
  const { machine, epoch, jobs } = options;
  for (const [gateway, rows] of jobs.rows()) {
    const beat: BeatPayload = { epoch, rows };
    jobs.uplink.publish(beatsSubject({ gateway, machine }), encodeFrame({ kind: "beat" }, [encodeJson(beat)]), {
      reply: echoSubject({ machine, epoch }, gateway),
    });
  }
  jobs.uplink.measure();
}
