import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { listModels } from "./list.ts";
import type { OperationsPort } from "./operations-port.ts";

const namedMax = 10;

/** Returns the only machine that is online, for commands that name none. Fails when there is not exactly one. */
export async function onlyMachine(port: OperationsPort): Promise<string> {
  const { machines } = await listModels(port);
  const there = machines.filter(({ state }) => state !== "offline" && state !== "stopping");
  const [first, ...others] = there.map(({ machine }) => machine);
  if (first === undefined) {
    throw new StartFailure(exitCodes.unavailable, "No machine is there: start `trunkline agent` on one.");
  }
  if (others.length === 0) return first;
  const named = [first, ...others].slice(0, namedMax).join(", ");
  throw new StartFailure(
    exitCodes.usage,
    `There is more than one machine: name one with --machine (${named}${others.length < namedMax ? "" : ", …"}).`,
  );
}
