import { connectNats, type NatsBroker } from "#shared/broker/nats-broker.ts";
import type { NatsSecurity } from "#shared/broker/nats-security.ts";
import { boot } from "#shared/broker/nats-tunnel.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { Log } from "#shared/process/log.ts";
import {
  type CredentialAnswer,
  credentialAnswer,
  credentialPath,
  challengeAnswer,
  challengePath,
  signChallenge,
} from "#shared/protocol/pairing.ts";
import { Nkey } from "#shared/protocol/nkey.ts";
import type { Pairing } from "#shared/site/pairing-file.ts";
import { askSite, type Site, SiteFailure } from "#shared/site/reach-site.ts";

interface Options {
  readonly pairing: Pairing;
  /** The way to the site's gateways, which issue the credentials. */
  readonly site: Site;
  readonly security: NatsSecurity;
  readonly clock: Clock;
  readonly log: Log;
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
export async function connectDirect(options: Options): Promise<DirectConnection | undefined> {
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

async function fetchCredential({ pairing, site }: Options): Promise<CredentialAnswer> {
  const { publicKey, seed, site: id } = pairing;
  const { challenge } = await askSite(site, { method: "GET", path: challengePath }, challengeAnswer);
  const signature = signChallenge(seed, { purpose: "credential", site: id, challenge });
  const body = { public_key: publicKey, challenge, signature, boot };
  return askSite(site, { method: "POST", path: credentialPath, body }, credentialAnswer);
}

/** A connection to NATS with a credential of an hour, which is renewed through the site's gateways. */
export class DirectConnection {
  readonly #options: Options;
  readonly #key: Nkey;
  readonly #refused = Promise.withResolvers<StartFailure>();
  readonly #renamed = new Set<() => void>();
  #credential: CredentialAnswer;
  #broker: NatsBroker | undefined;
  #timer: Timer | undefined;

  constructor(options: Options, credential: CredentialAnswer) {
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
