import { Fault } from "#shared/fault/fault.ts";
import { showModel, type ModelListing, type ShownMachine, manageLineBytesMax } from "#shared/protocol/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Target, Roster, RosterMachine } from "../fleet/roster.ts";
import { recordsOf } from "./job-events.ts";
import type { OpenJobs } from "./open-jobs.ts";
import type { LiveModels, MachineAnswer } from "./live-models.ts";
import { RecordReader } from "#shared/protocol/frame.ts";
import { decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import {
  manageProgress,
  type ManageRequest,
  type ManageBody,
  type ManageProgress,
} from "#shared/protocol/job-bodies.ts";
import { newToken } from "#shared/protocol/identifiers.ts";

interface FleetParts {
  readonly live: LiveModels;
  readonly jobs: OpenJobs;
  readonly roster: Roster;
  readonly clock: Clock;
}

/** The models of a fleet as its operators see them, machine by machine, and the actions on these models. */
export class FleetModels {
  readonly #parts: FleetParts;
  readonly #stopping = new AbortController();

  constructor(parts: FleetParts) {
    this.#parts = parts;
  }

  /** Returns the current models of every machine, or of the named one, and the machines that could not be asked. */
  async list(machine?: string): Promise<ModelListing> {
    if (machine !== undefined) this.#targetOf(machine);
    const { live, roster, clock } = this.#parts;
    const answers = await live.answers(machine === undefined ? undefined : [machine]);
    const known = roster.all(clock.now()).filter(({ presence }) => presence.machine === (machine ?? presence.machine));
    return listing(answers, known);
  }

  /**
   * Runs the model action on this machine to its end. Throws the fault if the machine refuses it or fails. No permission
   * check here: the machine's owner decides there.
   */
  async manage(machine: string, { action, model, onProgress, signal }: Managing): Promise<void> {
    const reader = new RecordReader({ textMax: manageLineBytesMax, broken: unreadable });
    const outcome = await this.#parts.jobs.run({
      target: this.#targetOf(machine),
      head: { id: newToken(), kind: "manage", model, remainingMs: manageTotalMs },
      body: encodeJson({ action } satisfies ManageBody),
      owner: recordsOf((payload) => {
        for (const { text } of reader.read(payload)) {
          const progress = decodeJson(manageProgress, Buffer.from(text));
          if (progress === undefined) throw unreadable();
          onProgress(progress);
        }
      }),
      signal: AbortSignal.any([signal, this.#stopping.signal]),
    });
    if (outcome.kind !== "end") throw outcome.fault;
  }

  /** Ends all actions under way: a pull could delay the stop of a gateway for hours. */
  stop(): void {
    this.#stopping.abort(new Fault("shutting_down", { message: "This gateway shuts down; send the request again." }));
  }

  #targetOf(machine: string): Target {
    const { jobs, roster, clock } = this.#parts;
    jobs.assertConnection();
    const found = roster.find(machine, clock.now());
    if (found === undefined) {
      throw new Fault("machine_not_found", {
        message: `No machine '${machine}' was there since this gateway started.`,
        param: "machine",
      });
    }
    if (found.status === "offline") {
      throw new Fault("agent_offline", { message: `The machine '${machine}' is not reachable.`, param: "machine" });
    }
    if (found.presence.state === "draining") {
      throw new Fault("shutting_down", { message: `The machine '${machine}' is draining.`, param: "machine" });
    }
    return found.presence;
  }
}

function listing(answers: readonly MachineAnswer[], known: readonly RosterMachine[]): ModelListing {
  const data = answers.flatMap(({ machine, answer }) => {
    const memory = known.find(({ presence }) => presence.machine === machine)?.presence.memory;
    return typeof answer === "string" ? [] : answer.map((offered) => showModel(offered, machine, memory));
  });
  const asked = answers.map(({ machine, answer }): ShownMachine => ({ machine, state: stateOf(answer) }));
  const others = known
    .filter(({ presence }) => !answers.some(({ machine }) => machine === presence.machine))
    .map(({ status, presence: { machine, state } }): ShownMachine => ({
      machine,
      state: status === "offline" ? "offline" : state === "draining" ? "stopping" : "no_answer",
    }));
  return {
    object: "list",
    data: data.toSorted((one, other) => byText(one.id, other.id) || byText(one.machine, other.machine)),
    machines: [...asked, ...others].toSorted((one, other) => byText(one.machine, other.machine)),
  };
}

function stateOf(answer: MachineAnswer["answer"]): ShownMachine["state"] {
  if (answer === "nothing") return "no_answer";
  return answer === "runtime_offline" ? "no_runtime" : "listed";
}

function byText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** The longest time of an action on a machine's model: a large model over a slow line takes hours. */
const manageTotalMs = 86_400_000;

interface Managing {
  readonly action: ManageRequest;
  /** The model's name as the operator wrote it. A model to be pulled has no other name yet. */
  readonly model: string;
  readonly onProgress: (progress: ManageProgress) => void;
  /** Cancels the work; the reason must be a Fault. */
  readonly signal: AbortSignal;
}

function unreadable(): Fault {
  return new Fault("upstream_error", { message: "The machine sent an invalid progress report." });
}
