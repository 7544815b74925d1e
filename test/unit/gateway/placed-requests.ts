import { writerOf } from "./writer-of-a-test.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { FaultPayload } from "#shared/protocol/frame-payload.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import type { AnswerCourse } from "../../../services/gateway/jobs/answer-course.ts";
import type { AnswerRenderer, AnswerWriter } from "../../../services/gateway/jobs/answer-parts.ts";
import type { DeliveredAnswer } from "../../../services/gateway/jobs/continue-answer.ts";
import { RefusedEfforts } from "../../../services/gateway/requests/refused-efforts.ts";
import { JobRunner } from "../../../services/gateway/requests/run-job.ts";
import { requestOfATest, type WishedRequest } from "./request-of-a-test.ts";
import { payloadOf, plainly } from "../../harness/answer-payload.ts";
import { end } from "./follower-on-a-wire.ts";
import { gatewayOnBroker, type ScriptedMachine } from "./gateway-on-a-broker.ts";
import { modelOf, presenceOf } from "./machines-of-a-fleet.ts";
import { fleetOfAGateway } from "./fleet-of-a-gateway.ts";

export const hello = payloadOf({ kind: "text", text: "Hello" }).toString();
export const finish = payloadOf({ kind: "finish", reason: "stop" }).toString();

export interface Wish extends WishedRequest {
  readonly render?: (model: string) => AnswerRenderer;
  readonly writer?: Partial<AnswerWriter>;
  /** Where the answer so far is kept, if another machine may go on with it. */
  readonly delivered?: DeliveredAnswer;
}

/** Requests of one gateway with four machines, each of which says what the test lets it say. */
export async function placing({
  present,
  models = {},
  loaded = {},
  told = {},
}: {
  readonly present?: readonly string[] | undefined;
  /** The models of machines that offer others than `llama3`. */
  readonly models?: Readonly<Record<string, readonly string[]>>;
  /** The machines that tell if their models are in memory. */
  readonly loaded?: Readonly<Record<string, boolean>>;
  /** Facts that machines tell of their models. */
  readonly told?: Readonly<Record<string, Partial<OfferedModel>>>;
} = {}) {
  const {
    machines,
    broker,
    open: jobs,
    roster,
    clock,
    timing,
    log,
    settle,
    pass,
  } = gatewayOnBroker({ names: ["gpu-1", "gpu-2", "gpu-3", "gpu-4"] });
  const { catalogues, breakers, placements, ranking, hear } = fleetOfAGateway({
    ask: async ({ machine }) =>
      (models[machine] ?? ["llama3"]).map((id) => ({ ...modelOf(id), loaded: loaded[machine], ...told[machine] })),
    clock,
    roster,
  });
  const come = async (name: string): Promise<void> => {
    machines.find((machine) => machine.name === name)?.listen();
    hear(presenceOf(name));
    await catalogues.settled();
  };
  for (const { name } of machines) {
    if (present === undefined || present.includes(name)) await come(name);
    else roster.notReached(presenceOf(name));
  }
  const leave = (name: string): void => machines.find((machine) => machine.name === name)?.connection.cut();
  const refusedEfforts = new RefusedEfforts(clock);
  const runner = new JobRunner({ ranking, breakers, placements, refusedEfforts, jobs, timing, clock, log });
  const heard: string[] = [];
  const leaving = new AbortController();
  const courses: AnswerCourse[] = [];
  const run = async (body = '{"messages":[]}', wish: Wish = {}): Promise<string> => {
    const { render = plainly, writer, delivered, ...fields } = wish;
    const onData = (bytes: Uint8Array): void => void heard.push(Buffer.from(bytes).toString());
    const request = requestOfATest(clock, { body, ...fields });
    courses.push(request.answer);
    request.answer.following(writerOf({ onData, ...writer }), { streamed: true, render, delivered });
    try {
      await runner.run(request, leaving.signal);
      return "end";
    } catch (thrown) {
      return Fault.from(thrown).code;
    }
  };
  /** The machine that was given the latest job, and that job. */
  const seen = new Map<ScriptedMachine, number>();
  const next = async (): Promise<{ machine: ScriptedMachine; job: string; body: string; head: JobHead }> => {
    await settle();
    for (const machine of machines) {
      const known = seen.get(machine) ?? 0;
      const given = machine.jobs[known];
      if (given === undefined) continue;
      seen.set(machine, known + 1);
      return { machine, job: given.head.id, body: Buffer.from(given.body).toString(), head: given.head };
    }
    throw new Error("no machine was given a job");
  };
  const fail = async (fault: FaultPayload): Promise<string> => {
    const { machine, job } = await next();
    machine.say(job, "accept", { state: "prefill" });
    machine.say(job, "fault", fault, 1);
    await settle();
    return machine.name;
  };
  /** Answers the latest job, and returns the machine and the model that did. */
  const answer = async (): Promise<string> => {
    const { machine, job, head } = await next();
    machine.say(job, "data", hello + finish, 1);
    machine.say(job, "end", end, 2);
    await settle();
    return `${machine.name} ${head.model}`;
  };
  const placed = (): number => machines.reduce((sum, { jobs: given }) => sum + given.length, 0);
  /** Lets time pass in which all machines but this one go on announcing themselves. */
  const passWithout = async (silent: ScriptedMachine, ms: number): Promise<void> => {
    for (let leftMs = ms; leftMs > 0; leftMs -= timing.presenceIntervalMs) {
      for (const { name } of machines) if (name !== silent.name) roster.announced(presenceOf(name), clock.now());
      await pass(Math.min(leftMs, timing.presenceIntervalMs));
    }
  };
  return {
    broker,
    run,
    next,
    fail,
    answer,
    placed,
    heard,
    courses,
    leaving,
    settle,
    pass,
    passWithout,
    come,
    leave,
    breakers,
    timing,
  };
}

export const broken: FaultPayload = { code: "upstream_error", message: "The runtime failed." };
