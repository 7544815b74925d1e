import type { Broker, BrokerMessage } from "#shared/broker/broker.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { control, decodeJobHead, decodePartHead, headHeader } from "#shared/protocol/job.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { frameVersion } from "#shared/protocol/frame.ts";
import { machinePattern, parseMachineSubject, parseReplySubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { JobTable } from "./job-table.ts";
import { sendBeats } from "./beats.ts";

interface ReceiveOptions {
  readonly broker: Broker;
  readonly machine: string;
  readonly epoch: string;
  readonly jobs: JobTable;
  /** Called with the epoch of a fence: a newer agent has this machine's name. */
  readonly onFence: (epoch: string) => void;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Passes the broker's messages for this boot of the machine to the job table, and ticks the table. Malformed messages
 * are logged and dropped; a gateway that gets no answer reports that to its client.
 */
export function receiveJobs(options: ReceiveOptions): { stop(): void } {
  const { broker, machine, epoch, jobs, onFence, clock, timing, log } = options;

  const receiveJob = (message: BrokerMessage): void => {
    const reply = message.reply === undefined ? undefined : parseReplySubject(message.reply);
    const decoded = decodeJobHead(message.headers?.[headHeader]);
    if (decoded.outcome === "other-version") {
      log.warn({ version: decoded.version, own: frameVersion }, "a job of another version of the wire was dropped");
      return;
    }
    if (decoded.outcome === "malformed" || reply?.machine !== machine || reply.job !== decoded.head.id) {
      log.warn({ subject: message.subject }, "a job that this agent does not understand was dropped");
      return;
    }
    jobs.receive(decoded.head, message.data, reply);
  };

  const receivePart = (message: BrokerMessage): void => {
    const decoded = decodePartHead(message.headers?.[headHeader]);
    if (decoded.outcome === "head") jobs.receivePart(decoded.head, message.data);
    else log.warn({ subject: message.subject }, "a part of no job was dropped");
  };

  const receiveControl = (message: BrokerMessage): void => {
    const decoded = decodeJson(control, message.data);
    if (decoded === undefined) {
      log.warn({ subject: message.subject }, "a control that this agent does not understand was dropped");
      return;
    }
    jobs.control(decoded, message.reply === undefined ? undefined : parseReplySubject(message.reply));
    if (decoded.kind === "probe") answerProbes();
    else if (decoded.kind === "fence") onFence(decoded.epoch);
  };

  // A single beat answers all probes of one turn of the event loop.
  let probed = false;
  const answerProbes = (): void => {
    if (probed) return;
    probed = true;
    setImmediate(() => {
      probed = false;
      sendBeats(options);
    });
  };

  const subscription = broker.subscribe(machinePattern({ machine, epoch }), (message) => {
    const addressed = parseMachineSubject(message.subject);
    switch (addressed.channel) {
      case "job":
        receiveJob(message);
        return;
      case "part":
        receivePart(message);
        return;
      case "control":
        receiveControl(message);
        return;
      case "echo":
        if (message.noResponders) jobs.gatewayMissing(addressed.gateway);
        return;
      case "unknown":
        log.debug({ subject: message.subject }, "a message of a kind that this agent does not know was dropped");
    }
  });
  // On a full line only every second beat is sent: a row for each job is much for a thin one.
  let isLeftOut = false;
  const pace = clock.every(timing.beatIntervalMs, () => {
    jobs.tick();
    isLeftOut = jobs.uplink.isFull && !isLeftOut;
    if (!isLeftOut) sendBeats(options);
  });
  // Messages published while the connection was down are lost. A beat tells the gateways which frames to ask for.
  const connection = broker.onChange((connected) => {
    if (connected) sendBeats(options);
  });
  return {
    stop() {
      connection.end();
      pace.cancel();
      subscription.end();
    },
  };
}
