import { machineOperations } from "#shared/admin/machine-operations.ts";
import { jobsLeft } from "#shared/fleet/fleet-words.ts";
import { changeMachine } from "#shared/records/change-machine.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { type CliCommand, type JsonOption } from "../terminal/command-line.ts";
import { interruptedCode, untilInterrupted } from "../terminal/interrupt.ts";
import { machineArgument } from "./machines-change.ts";
import { atGateway, type OperationsPort } from "../site/operations-port.ts";
import { withKeyStore } from "../site/with-key-store.ts";

const lookMs = 1_000;
/** Time after the cordon in which a gateway that has not heard of it may still place a job. */
const settleMs = 2_000;

export function addDrain(machines: CliCommand): void {
  const { context } = machines;
  const { stderr, clock } = context;
  machines
    .sub("drain", "cordon a machine and wait until its last answer has ended, or goes on elsewhere", machineArgument())
    .more(`
The machine stays cordoned, also when Ctrl-C ends the wait: "trunkline machines uncordon" gives it jobs again.

Example:
  trunkline machines drain attic && ssh attic sudo reboot`)
    .does(atGateway, async (port, name: string, { json }: JsonOption) => {
      await withKeyStore(context, { json: true }, async (store) => {
        // A machine that is cordoned already keeps its reason.
        const { reason = "drained" } = (await store.machines.find(name))?.cordon ?? {};
        await changeMachine(name, { action: "machine_cordoned", reason, drains: true }, store);
      });
      const say = (line: string): void => void (json || stderr.write(line));
      await untilIdle(name, port, { say, clock });
      return {
        answer: { machine: name, outcome: "drained" },
        text: `${name} has no job and gets no new one; \`trunkline machines uncordon ${name}\` gives it jobs again`,
      };
    });
}

/** Waits until a machine has no job, and says how many are left whenever that changes. */
async function untilIdle(
  name: string,
  port: OperationsPort,
  { say, clock }: { readonly say: (line: string) => void; readonly clock: Clock },
): Promise<void> {
  using interrupted = untilInterrupted();
  const { signal } = interrupted;
  let said = "";
  try {
    await sleep(clock, settleMs, signal);
    for (;;) {
      const { data } = await port.ask(machineOperations.listMachines, {}, signal);
      const left = jobsLeft(data.filter(({ machine }) => machine === name));
      if (left.running + left.waiting === 0) return;
      const line = `${name}: ${left.running} running, ${left.waiting} waiting\n`;
      if (line !== said) say(line);
      said = line;
      await sleep(clock, lookMs, signal);
    }
  } catch (error) {
    if (signal.aborted) throw new StartFailure(interruptedCode, `Interrupted: ${name} stays cordoned.`);
    if (!(error instanceof StartFailure)) throw error;
    throw new StartFailure(error.exitCode, `${name} is cordoned, but its jobs cannot be watched: ${error.message}`);
  }
}
