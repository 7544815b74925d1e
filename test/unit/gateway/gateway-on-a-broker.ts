import { setImmediate as nextTurn } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { BrokerMessage } from "#shared/broker/broker.ts";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import { Fault } from "#shared/fault/fault.ts";
import { createLog } from "#shared/process/log.ts";
import {
  control,
  type Control,
  decodeJobHead,
  decodePartHead,
  headHeader,
  type JobHead,
} from "#shared/protocol/job.ts";
import { encodeJson, type BeatRow } from "#shared/protocol/frame-payload.ts";
import { encodeFrame, type FrameKind } from "#shared/protocol/frame.ts";
import { beatsSubject, machinePattern, parseMachineSubject, replySubject } from "#shared/protocol/subjects.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { recordsOf } from "../../../services/gateway/jobs/job-events.ts";
import { toldOf } from "./follower-on-a-wire.ts";
import type { JobSubmission } from "../../../services/gateway/jobs/open-job.ts";
import { OpenJobs } from "../../../services/gateway/jobs/open-jobs.ts";
import type { Barred } from "../../../services/gateway/fleet/machine-records.ts";
import { Roster } from "../../../services/gateway/fleet/roster.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

export const gateway = newToken();

/** What a machine hears, and what a test makes it say. Nobody is on its subjects before it listens. */
export class ScriptedMachine {
  readonly name: string;
  readonly epoch: string;
  readonly jobs: { head: JobHead; body: Uint8Array; reply: string | undefined }[] = [];
  readonly parts: { offset: number; bytes: Uint8Array }[] = [];
  /** All but leases, which come at their own pace. */
  readonly controls: Control[] = [];
  readonly leases: string[] = [];
  readonly connection: ReturnType<MemoryBroker["connect"]>;

  constructor(network: MemoryBroker, name: string) {
    this.name = name;
    this.epoch = presenceOf(name).epoch;
    this.connection = network.connect();
  }

  listen(): this {
    const self = { machine: this.name, epoch: this.epoch };
    this.connection.subscribe(machinePattern(self), (message) => this.#hear(message));
    return this;
  }

  say(job: string, kind: FrameKind, payload: unknown, sequence = 0, outputTokens = 0): void {
    const bytes = kind === "data" ? Buffer.from(String(payload)) : encodeJson(payload);
    const subject = replySubject({ gateway, machine: this.name, job });
    this.connection.publish(subject, encodeFrame({ kind, sequence, outputTokens }, bytes));
  }

  beat(...rows: BeatRow[]): void {
    const subject = beatsSubject({ gateway, machine: this.name });
    this.connection.publish(subject, encodeFrame({ kind: "beat" }, encodeJson({ epoch: this.epoch, rows })));
  }

  /** The controls since this was asked last. */
  takeControls(): Control[] {
    return this.controls.splice(0);
  }

  #hear(message: BrokerMessage): void {
    const header = message.headers?.[headHeader];
    switch (parseMachineSubject(message.subject).channel) {
      case "job": {
        const decoded = decodeJobHead(header);
        if (decoded.outcome === "head") {
          this.jobs.push({ head: decoded.head, body: message.data, reply: message.reply });
        }
        return;
      }
      case "part": {
        const decoded = decodePartHead(header);
        this.parts.push({ offset: decoded.outcome === "head" ? decoded.head.offset : -1, bytes: message.data });
        return;
      }
      case "control": {
        const told = control.parse(JSON.parse(Buffer.from(message.data).toString()));
        if (told.kind === "lease") this.leases.push(told.gateway);
        else this.controls.push(told);
        return;
      }
      case "echo":
      case "unknown":
    }
  }
}

/** The jobs of a real gateway on a real broker in this process; time and the machines are the test's. */
export function gatewayOnBroker({
  names = ["gpu-1", "gpu-2"],
  barred,
}: {
  readonly names?: readonly string[];
  /** Why machines get no jobs, by their names. */
  readonly barred?: ReadonlyMap<string, Barred>;
} = {}) {
  const clock = new TurnableClock();
  const log = createLog({ level: "silent", name: "test" });
  const timing = timingAt(1);
  const network = new MemoryBroker({ clock, log });
  const broker = network.connect();
  const roster = new Roster(timing, (name) => barred?.get(name));
  const open = new OpenJobs({ broker, gateway, roster, timing, clock, log });
  onTestFinished(() => open.stop());
  const machines = names.map((name) => {
    roster.announced(presenceOf(name), clock.now());
    return new ScriptedMachine(network, name);
  });
  const [machine, other] = machines;
  if (machine === undefined || other === undefined) throw new Error("there are two machines");

  async function settle(): Promise<void> {
    for (let turn = 0; turn < 8; turn += 1) await nextTurn();
  }
  async function pass(ms: number): Promise<void> {
    await clock.advanceAwaiting(ms);
    await settle();
  }

  /** Submits a chat job; what becomes of it is noted in order. */
  async function run(fields: Partial<Pick<JobSubmission, "body" | "acceptWithinMs">> & { aborted?: boolean } = {}) {
    const { body = Buffer.from("{}"), acceptWithinMs = timing.lostAfterMs, aborted = false } = fields;
    const told: string[] = [];
    const leaving = new AbortController();
    const leave = (): void => leaving.abort(new Fault("client_closed", { message: "The client left." }));
    if (aborted) leave();
    const id = newToken();
    const head = { id, kind: "chat", model: "llama3", keyId: "key", remainingMs: 599_999.5 } as const;
    const records = recordsOf((bytes) => void told.push(Buffer.from(bytes).toString()));
    const owner: JobSubmission["owner"] = {
      ...records,
      on(event) {
        if (event.kind === "accepted") told.push(event.kind);
        else records.on(event);
      },
    };
    const target = { machine: machine?.name ?? "", epoch: machine?.epoch ?? "" };
    const noteOutcome = async (): Promise<void> => {
      const { signal } = leaving;
      const outcome = await open.run({ target, head, body, acceptWithinMs, owner, signal });
      told.push(toldOf(outcome));
    };
    void noteOutcome();
    await settle();
    return { id, told, leave };
  }

  return { machine, other, machines, log, open, roster, broker, clock, timing, settle, pass, run };
}
