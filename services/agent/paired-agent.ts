import { connectTunnel, type Tunnel } from "#shared/broker/nats-tunnel.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { type Pairing, writePairing } from "#shared/site/pairing-file.ts";
import { openSite } from "#shared/site/reach-site.ts";
import { startAgent } from "./compose.ts";
import type { AgentConfig } from "./config.ts";

interface PairedAgentOptions {
  readonly config: AgentConfig;
  readonly pairing: Pairing;
  readonly environment: Environment;
  /** The lifecycle of the process, which ends when the site refuses the machine for good. */
  readonly lifecycle: Lifecycle;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The agent of a paired machine, connected by its tunnel. The site names the machine. When the site renames it, the agent
 * keeps the name and builds all its parts anew, since every subject holds the name.
 */
export class PairedAgent {
  readonly #options: PairedAgentOptions;
  #pairing: Pairing;
  #parts: Lifecycle;
  #restarting: Promise<void> = Promise.resolve();

  constructor(options: PairedAgentOptions) {
    this.#options = options;
    this.#pairing = options.pairing;
    this.#parts = new Lifecycle(options);
  }

  async start(): Promise<void> {
    this.#options.lifecycle.onStop("paired agent", async (deadline) => {
      await this.#restarting;
      await this.#parts.stopBy(deadline);
    });
    await this.#startParts();
  }

  async #startParts(): Promise<void> {
    const { config, environment, lifecycle, clock, log } = this.#options;
    const parts = new Lifecycle({ clock, log });
    this.#parts = parts;
    const site = openSite({ ...this.#pairing, environment });
    const connection = await connectTunnel({ ...this.#pairing, ...site, clock, log });
    parts.onStop("connection to the site", () => connection.close());
    const fail = (reason: Error): void => lifecycle.fail(reason);
    void parts.failed.then(fail);
    void connection.refused.then(fail);
    connection.onRenamed(() => {
      this.#restarting = this.#restart(connection).catch(fail);
    });
    const { machine } = connection;
    if (machine !== this.#pairing.machine) {
      this.#pairing = { ...this.#pairing, machine };
      writePairing(config.stateDir, this.#pairing);
    }
    const { chosenMachine } = config;
    if (chosenMachine !== undefined && chosenMachine !== machine) {
      log.warn({ chosenMachine, machine }, "TRUNKLINE_MACHINE does not count on a paired machine: its site names it");
    }
    await startAgent({
      config: { ...config, machine },
      broker: connection,
      tunnelled: true,
      lifecycle: parts,
      clock,
      log,
      fallbackToScripted: false,
    });
  }

  /** Ends the parts at once: the site has ended the jobs of the old name, and nobody hears it any more. */
  async #restart(connection: Pick<Tunnel, "machine" | "close">): Promise<void> {
    const { lifecycle, log } = this.#options;
    log.warn({ before: this.#pairing.machine, machine: connection.machine }, "the site has renamed this machine");
    await connection.close();
    await this.#parts.stop(0);
    if (!lifecycle.draining) await this.#startParts();
  }
}
