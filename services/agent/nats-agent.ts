import { connectNats, NatsUnreachable } from "#shared/broker/nats-broker.ts";
import { ReconnectPace } from "#shared/broker/nats-connection.ts";
import type { Timer } from "#shared/process/clock.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import { LogThrottle } from "#shared/process/log.ts";
import { type AgentProcess, startAgent, watchRuntimes } from "./compose.ts";

/** Factor from each delay between two attempts to the next. */
const delayGrowth = 2;

/**
 * Starts an agent that connects to NATS itself. While NATS cannot be reached, the agent says so and tries again until its
 * process stops. Every other failure ends the process.
 */
export async function startOnNats(options: AgentProcess): Promise<void> {
  const { config, lifecycle, clock, log } = options;
  const { natsUrl: url = "", natsCreds: credentialsFile, natsSecurity: security, machine } = config;
  const name = `trunkline agent ${machine}`;
  const pace = new ReconnectPace(Math.random, delayGrowth);
  const runtime = await watchRuntimes(options);
  const told = new LogThrottle(clock);
  let parts = new Lifecycle(options);
  let next: Timer | undefined;
  lifecycle.onStop("agent", (deadline) => {
    next?.cancel();
    return parts.stopBy(deadline);
  });
  const fail = (reason: Error): void => lifecycle.fail(reason);
  const attempt = async (): Promise<void> => {
    parts = new Lifecycle(options);
    try {
      const broker = await connectNats({ url, credentialsFile, security, name, clock, log });
      parts.onStop("broker", () => broker.close());
      void parts.failed.then(fail);
      if (lifecycle.draining) await parts.stop(0);
      else await startAgent({ ...options, broker, runtime, lifecycle: parts });
    } catch (error) {
      await parts.stop(0);
      if (!(error instanceof NatsUnreachable)) throw error;
      if (lifecycle.draining) return;
      if (told.isDue(error.message)) log.warn(`${error.message} The agent tries again.`);
      next = clock.after(pace.nextMs(), () => void attempt().catch(fail));
    }
  };
  await attempt();
}
