import type { Command } from "commander";
import { fleetListing, type ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { changeMachine } from "#shared/machines/change-machine.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import {
  type GivenJson,
  interruptedCode,
  jsonOption,
  type Output,
  type Surroundings,
  untilInterrupted,
} from "./command-line.ts";
import { machineArgument } from "./machine-options.ts";
import { givenOperations, type GivenOperations, operationsUrlOption, whichGatewayHelp } from "./operations-options.ts";
import type { OperationsPort } from "./operations-port.ts";
import { actor, withKeyStore } from "./with-key-store.ts";

const lookMs = 1_000;
/** Time after the cordon in which a gateway that has not heard of it may still place a job. */
const settleMs = 2_000;

/** Adds the command that cordons a machine and waits until its last job has ended. */
export function addDrain(machines: Command, surroundings: Surroundings): void {
  const { stdout } = surroundings;
  machines
    .command("drain")
    .description("cordon a machine and wait until its last job has ended")
    .addArgument(machineArgument())
    .addOption(operationsUrlOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
The machine stays cordoned, also when Ctrl-C ends the wait: "trunkline machines uncordon" gives it jobs again.

Example:
  trunkline machines drain attic && ssh attic sudo reboot
${whichGatewayHelp}`,
    )
    .action(async (name: string, { json, ...given }: GivenOperations & GivenJson) => {
      const port = givenOperations(given, surroundings);
      await cordon(name, surroundings);
      await untilIdle(name, port, { ...surroundings, stderr: json ? silent : surroundings.stderr });
      const said = `${name} has no job and gets no new one; \`trunkline machines uncordon ${name}\` gives it jobs again`;
      stdout.write(`${json ? JSON.stringify({ machine: name, outcome: "drained" }) : said}\n`);
    });
}

const silent: Output = { write: () => undefined };

/** Cordons a machine, unless it is cordoned already: another reason stays. */
async function cordon(name: string, surroundings: Surroundings): Promise<void> {
  await withKeyStore(surroundings, { json: true }, async ({ machines, keys, clock }) => {
    if ((await machines.find(name))?.cordon !== undefined) return;
    const change = { action: "machine_cordoned", reason: "drained" } as const;
    await changeMachine(name, change, { machines, keys, clock, actor: actor() });
  });
}

/** Waits until a machine has no job, and says how many are left whenever that changes. */
async function untilIdle(
  name: string,
  port: OperationsPort,
  { stderr, clock }: { readonly stderr: Output; readonly clock: Clock },
): Promise<void> {
  const interrupted = untilInterrupted();
  const { signal } = interrupted;
  let said = "";
  try {
    await sleep(clock, settleMs, signal);
    for (;;) {
      const { data } = await port.get("/fleet", fleetListing, { signal });
      const left = jobsLeft(data.filter(({ machine }) => machine === name));
      if (left.running + left.waiting === 0) return;
      const line = `${name}: ${left.running} running, ${left.waiting} waiting\n`;
      if (line !== said) stderr.write(line);
      said = line;
      await sleep(clock, lookMs, signal);
    }
  } catch (error) {
    if (signal.aborted) throw new StartFailure(interruptedCode, `Interrupted: ${name} stays cordoned.`);
    if (!(error instanceof StartFailure)) throw error;
    throw new StartFailure(error.exitCode, `${name} is cordoned, but its jobs cannot be watched: ${error.message}`);
  } finally {
    interrupted.release();
  }
}

/** Returns the jobs of all boots of a machine that are there, as they report them. */
function jobsLeft(boots: readonly ShownFleetMachine[]): { readonly running: number; readonly waiting: number } {
  const there = boots.filter(({ status }) => status !== "offline");
  const sum = (count: (boot: ShownFleetMachine) => number): number => there.reduce((all, boot) => all + count(boot), 0);
  const waiting = sum(({ queued }) => queued);
  const running = sum(({ running: reported, queued, open_jobs: open }) => Math.max(reported, open - queued));
  return { running, waiting };
}
