import { connectTunnel } from "#shared/site/nats-tunnel.ts";
import type { Environment } from "#shared/process/config.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { type Pairing, writePairing } from "#shared/site/pairing-file.ts";
import { openSite } from "#shared/site/reach-site.ts";
import { type AgentProcess, startAgent, watchRuntimes } from "./compose.ts";
import type { RuntimeWatch } from "./models/watch-runtimes.ts";

/** The process ends when the site refuses the machine for good. */
interface PairedAgentOptions extends AgentProcess {
  readonly pairing: Pairing;
  readonly environment: Environment;
}

/**
 * The agent of a paired machine, connected by its tunnel. The site names the machine. When the site renames it, the agent
 * keeps the name and builds its parts anew on a second connection, since every subject holds the name. The parts of the
 * old name take jobs until the new ones are there, and then finish those that they have.
 */
export class PairedAgent {
  readonly #options: PairedAgentOptions;
  #pairing: Pairing;
  #runtime: RuntimeWatch | undefined;
  #parts: Lifecycle;
  #former: Lifecycle | undefined;
  #renaming: Promise<void> = Promise.resolve();

  constructor(options: PairedAgentOptions) {
    this.#options = options;
    this.#pairing = options.pairing;
    this.#parts = new Lifecycle(options);
  }

  async start(): Promise<void> {
    const { lifecycle } = this.#options;
    this.#runtime = await watchRuntimes(this.#options);
    lifecycle.onStop("paired agent", async (deadline) => {
      await this.#renaming;
      await Promise.all([this.#parts.stopBy(deadline), this.#former?.stopBy(deadline)]);
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
    const fail = (reason: Error): void => {
      if (this.#parts === parts) lifecycle.fail(reason);
    };
    void parts.failed.then(fail);
    void connection.refused.then(fail);
    const { machine } = connection;
    connection.onRenamed((name) => {
      const isVoid = connection.machine === name;
      if (this.#parts === parts) this.#renaming = this.#rename(name, { isVoid }).catch(fail);
      else void connection.close();
    });
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
      runtime: this.#runtime,
      lifecycle: parts,
      clock,
      log,
    });
  }

  /** `isVoid`: nobody hears the old name any more, because the machine was renamed while it was away. */
  async #rename(name: string, { isVoid }: { readonly isVoid: boolean }): Promise<void> {
    const { config, lifecycle, log } = this.#options;
    log.warn({ before: this.#pairing.machine, machine: name }, "the site has renamed this machine");
    const former = this.#parts;
    this.#former = former;
    if (isVoid) await former.stop(0);
    if (lifecycle.draining) return;
    await this.#startParts();
    void former.stop(timingAt(config.timeScale, config).renamedFinishesMs);
  }
}
