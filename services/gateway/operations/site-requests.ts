import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { Log } from "#shared/process/log.ts";
import type { Clock } from "#shared/process/clock.ts";
import { type Actor, auditEntry } from "#shared/records/audit-entry.ts";
import { requestCancelled, type SignIns } from "#shared/records/sign-in.ts";
import { toldRunning } from "#shared/requests/running-request.ts";
import type { Settlements } from "../limits/settlements.ts";
import { recordedTextMax } from "../requests/record-request.ts";
import { cancelHere, runningHere } from "../requests/running-requests.ts";
import { GatewayAsker } from "./ask-gateways.ts";

const questions = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("running") }),
  z.object({ kind: z.literal("cancel"), id: z.string(), actor: auditEntry.pick({ by: true, request: true }) }),
]);

type Dependencies = Omit<ConstructorParameters<typeof GatewayAsker>[0], "answer" | "clock" | "log"> & {
  readonly settlements: Pick<Settlements, "running">;
  readonly sessions: Pick<SignIns, "noteSignIn">;
  readonly clock: Clock;
  readonly log: Pick<Log, "info">;
};

/** Time for which other gateways are waited for: by a page that looks each second, and by somebody who cancels. */
const runningWithinMs = 300;
const cancelWithinMs = 2_000;

/** The requests that run at all gateways of the site, each of which knows its own. */
export class SiteRequests {
  readonly #parts: Dependencies;
  readonly #others: GatewayAsker;

  constructor(parts: Dependencies) {
    this.#parts = parts;
    this.#others = new GatewayAsker({ ...parts, answer: (about) => this.#answer(about) });
  }

  async list() {
    const { answers, silent } = await this.#others.ask({ kind: "running" }, { withinMs: runningWithinMs });
    const told = [runningHere(this.#parts), ...answers.flatMap((each) => toldRunning.safeParse(each).data ?? [])];
    return {
      data: told.flatMap(({ data }) => data).toSorted((one, other) => other.age_ms - one.age_ms),
      left_out: told.reduce((sum, each) => sum + each.left_out, 0),
      silent,
    };
  }

  /** Cancels a request at the gateway that has it. */
  async cancel(id: string, actor: Actor): Promise<void> {
    const asked = { kind: "cancel" as const, id, actor };
    if (await this.#cancelHere(asked)) return;
    const terms = { withinMs: cancelWithinMs, isEnough: (answer: unknown) => answer === true };
    const { answers, silent } = await this.#others.ask(asked, terms);
    if (!answers.includes(true)) throw notRunning(id, silent);
  }

  close(): void {
    this.#others.close();
  }

  async #answer(question: unknown): Promise<unknown> {
    const { data: asked } = questions.safeParse(question);
    if (asked === undefined) return null;
    return asked.kind === "running" ? runningHere(this.#parts) : this.#cancelHere(asked);
  }

  /** Cancels a request of this gateway, and notes in the trail who did. Returns false if it does not run here. */
  async #cancelHere({ id, actor }: { readonly id: string; readonly actor: Actor }): Promise<boolean> {
    const { sessions, clock, log } = this.#parts;
    const { key, asked } = cancelHere(id, this.#parts) ?? {};
    if (key === undefined) return false;
    log.info({ ...actor, cancelled: id, key: key.id }, "an operator cancelled a request");
    const detail = { request: id, model: asked?.model.slice(0, recordedTextMax) };
    const what = { action: requestCancelled, key: key.id, name: key.name, detail } as const;
    await sessions.noteSignIn({ at: clock.wall(), ...actor, ...what });
    return true;
  }
}

function notRunning(id: string, silent: readonly string[]): Fault {
  const unasked = silent.length === 0 ? "" : ` These gateways did not answer: ${silent.join(", ")}.`;
  const message = `No request ${id} is running: it has ended, or the site never had it.${unasked}`;
  return new Fault("request_not_found", { message, param: "id" });
}
