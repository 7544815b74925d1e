import { connectNats, type NatsBroker } from "#shared/broker/nats-broker.ts";
import type { NatsSecurity } from "#shared/broker/nats-security.ts";
import { boot, connectTunnel, type Tunnel } from "#shared/broker/nats-tunnel.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, Lifecycle, StartFailure } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import { Nkey } from "#shared/protocol/nkey.ts";
import {
  type CredentialAnswer,
  credentialAnswer,
  credentialPath,
  challengeAnswer,
  challengePath,
  signChallenge,
} from "#shared/protocol/pairing.ts";
import { type Pairing, writePairing } from "#shared/site/pairing-file.ts";
import { askSite, openSite, type Site, SiteFailure } from "#shared/site/reach-site.ts";
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
 * The agent of a paired machine, connected by its tunnel or directly to NATS. The site names the machine. When the site renames it, the
 * agent keeps the name and builds all its parts anew, since every subject holds the name.
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
    const means = { security: config.natsSecurity, clock, log };
    const way = openSite({ ...this.#pairing, environment });
    const direct = config.direct ? await connectDirect({ pairing: this.#pairing, site: way, ...means }) : undefined;
    const connection = direct ?? (await connectTunnel({ ...this.#pairing, ...way, clock, log }));
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
      broker: "broker" in connection ? connection.broker : connection,
      tunnelled: direct === undefined,
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

interface DirectOptions extends Pick<PairedAgentOptions, "pairing" | "clock" | "log"> {
  /** The way to the site's gateways, which issue the credentials. */
  readonly site: Site;
  readonly security: NatsSecurity;
}

/** Share of a credential's lifetime after which it is renewed. */
const renewAfter = 0.75;
/** The pause after a renewal that failed, and between a lost connection and a new credential. */
const retryMs = 60_000;
const afterLossMs = 1_000;
const goneForGood = new Set(["machine_unknown", "machine_revoked"]);

/**
 * Connects a paired machine to NATS without a gateway in between. Returns undefined where that does not work; the machine
 * then connects by its tunnel.
 */
export async function connectDirect(options: DirectOptions): Promise<DirectConnection | undefined> {
  const { pairing, clock, log } = options;
  try {
    const credential = await fetchCredential(options);
    const direct = new DirectConnection(options, credential);
    await direct.connect();
    return direct;
  } catch (error) {
    if (!(error instanceof SiteFailure || error instanceof StartFailure)) throw error;
    const reason = error.message;
    log.warn({ reason, origin: pairing.origin, at: clock.wall() }, "no direct connection to NATS; using the tunnel");
    return undefined;
  }
}

async function fetchCredential({ pairing, site }: DirectOptions): Promise<CredentialAnswer> {
  const { publicKey, seed, site: id } = pairing;
  const { challenge } = await askSite(site, { method: "GET", path: challengePath }, challengeAnswer);
  const signature = signChallenge(seed, { purpose: "credential", site: id, challenge });
  const body = { public_key: publicKey, challenge, signature, boot };
  return askSite(site, { method: "POST", path: credentialPath, body }, credentialAnswer);
}

/** A connection to NATS with a credential of an hour, which is renewed through the site's gateways. */
export class DirectConnection {
  readonly #options: DirectOptions;
  readonly #key: Nkey;
  readonly #refused = Promise.withResolvers<StartFailure>();
  readonly #renamed = new Set<() => void>();
  #credential: CredentialAnswer;
  #broker: NatsBroker | undefined;
  #timer: Timer | undefined;

  constructor(options: DirectOptions, credential: CredentialAnswer) {
    const key = Nkey.fromSeed("U", options.pairing.seed);
    if (key === undefined)
      throw new StartFailure(exitCodes.config, "The key of this machine is damaged: pair it anew.");
    this.#options = options;
    this.#key = key;
    this.#credential = credential;
  }

  get broker(): NatsBroker {
    if (this.#broker === undefined) throw new Error("there is no connection to NATS yet");
    return this.#broker;
  }

  /** The machine's name, as the site told it with the latest credential. */
  get machine(): string {
    return this.#credential.machine;
  }

  /** Resolves when the site says that this machine's key will never work again. */
  get refused(): Promise<StartFailure> {
    return this.#refused.promise;
  }

  onRenamed(listener: () => void): void {
    this.#renamed.add(listener);
  }

  async connect(): Promise<void> {
    const { security, clock, log } = this.#options;
    const { servers: url, ca, machine } = this.#credential;
    const remedy = "it is renewed through the site's gateways";
    const credential = () => ({ jwt: this.#credential.jwt, key: this.#key, remedy });
    const trusted = security.caFile === undefined && ca !== undefined ? { ...security, ca } : security;
    const name = `trunkline agent ${machine}`;
    this.#broker = await connectNats({ url, credential, security: trusted, name, clock, log });
    // A key that was revoked or renamed loses its connection. The site says which of the two it is.
    this.#broker.onChange((connected) => {
      if (!connected) this.#renewIn(afterLossMs);
    });
    this.#renewIn(this.#credential.expires_in_ms * renewAfter);
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#renamed.clear();
    await this.#broker?.close();
  }

  #renewIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(ms, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { log } = this.#options;
    const { machine } = this.#credential;
    try {
      this.#credential = await fetchCredential(this.#options);
    } catch (error) {
      if (error instanceof SiteFailure && goneForGood.has(error.code ?? "")) {
        this.#refused.resolve(new StartFailure(exitCodes.config, error.message, { cause: error }));
        return;
      }
      log.warn({ err: error }, "the credential for NATS was not renewed; it is tried again");
      this.#renewIn(retryMs);
      return;
    }
    this.#renewIn(this.#credential.expires_in_ms * renewAfter);
    if (machine !== this.#credential.machine) for (const listener of this.#renamed) listener();
    else if (this.broker.connected) await this.broker.renew();
  }
}
