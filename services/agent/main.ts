import { resolve } from "node:path";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { createLog } from "#shared/process/log.ts";
import { exitCodes, runUntilStopped, StartFailure } from "#shared/process/lifecycle.ts";
import type { JoinLine } from "#shared/protocol/pairing.ts";
import { type Pairing, pairingFile, readPairing } from "#shared/site/pairing-file.ts";
import { agentConfig, type AgentConfig } from "./config.ts";
import { type JoinMeans, joinSite } from "./machine/join-site.ts";
import { startOnNats } from "./nats-agent.ts";
import { PairedAgent } from "./paired-agent.ts";

/** A person's wish to pair this machine. */
interface JoinWish extends Pick<JoinMeans, "replace" | "say"> {
  readonly line: JoinLine;
}

/** Pairs this machine with a site, and keeps the pairing in the state folder. */
export async function joinMachine(environment: Environment, { line, ...wish }: JoinWish): Promise<Pairing> {
  const { natsUrl, stateDir } = agentConfig(environment);
  if (natsUrl !== undefined) {
    const message =
      "TRUNKLINE_NATS_URL is set, and a machine that joins a site needs no NATS: unset it, or start the agent without --join.";
    throw new StartFailure(exitCodes.config, message);
  }
  return joinSite(line, { ...wish, stateDir: resolve(stateDir), environment, clock });
}

/**
 * Runs an agent as a process of its own until it is stopped. It connects to NATS where `TRUNKLINE_NATS_URL` is set, and
 * otherwise to the site that this machine is paired with.
 */
export async function runAgent(environment: Environment): Promise<void> {
  const config = agentConfig(environment);
  const { natsUrl, logLevel: level, logFormat: format, drainMs } = config;
  const pairing = natsUrl === undefined ? assertPairing(config) : undefined;
  const log = createLog({ level, format, name: "agent" });
  await runUntilStopped({
    environment,
    drainMs,
    log,
    start: (lifecycle) =>
      pairing === undefined
        ? startOnNats({ config, lifecycle, clock, log })
        : new PairedAgent({ config, pairing, environment, lifecycle, clock, log }).start(),
  });
}

function assertPairing({ stateDir, chosenMachine }: AgentConfig): Pairing {
  const pairing = readPairing(stateDir);
  if (pairing !== undefined) return pairing;
  const message = `This machine is not paired (there is no ${resolve(pairingFile(stateDir))}), and TRUNKLINE_NATS_URL is not set. Pair it with the line that "trunkline machines pair ${chosenMachine ?? "<name>"}" prints on the site, or set TRUNKLINE_NATS_URL to the site's NATS. "trunkline up" runs everything in one process.`;
  throw new StartFailure(exitCodes.config, message);
}
