import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import {
  agentProof,
  challengeAnswer,
  challengePath,
  joinKey,
  type JoinLine,
  newMachineKeyPair,
  pairAnswer,
  pairPath,
  provesSame,
  siteProof,
} from "#shared/protocol/pairing.ts";
import {
  forgetDraft,
  type Pairing,
  type PairingDraft,
  pairingFile,
  readDraft,
  readPairing,
  writeDraft,
  writePairing,
} from "#shared/site/pairing-file.ts";
import { askSite, openSite, pinnedCertificate, type Site, SiteFailure } from "#shared/site/reach-site.ts";

interface JoinMeans {
  readonly stateDir: string;
  /** True if the pairing may replace one with another site. */
  readonly replace: boolean;
  readonly environment: Environment;
  readonly clock: Clock;
  /** Shows a line to the person who pairs. */
  readonly say: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Time for which a site that cannot be reached is asked again, and the pause between two attempts. */
const triedForMs = 60_000;
const pauseMs = 2_000;

/**
 * Pairs this machine with a site by a join line, and keeps the pairing in the state folder. Each pairing has a key pair
 * of its own. The key pair is kept before it is sent: when the site's answer is lost, the same line gets the same
 * answer again. A line that this machine has joined by before changes nothing.
 */
export async function joinSite(line: JoinLine, means: JoinMeans): Promise<Pairing> {
  const { stateDir, clock, say } = means;
  const before = readPairing(stateDir);
  if (before?.join === line.id && before.origin === line.origin) return before;
  const untilMs = clock.now() + triedForMs;
  const joining = new Joining(line, before, means);
  for (;;) {
    try {
      const paired = await joining.attempt();
      writePairing(stateDir, paired);
      say(`This machine is now '${paired.machine}' of ${paired.origin}; its key is in ${pairingFile(stateDir)}.`);
      if (before !== undefined && before.site !== paired.site) {
        say(`${before.origin} still knows it: "trunkline machines revoke ${before.machine}" there ends that.`);
      }
      return paired;
    } catch (error) {
      if (!(error instanceof SiteFailure)) throw error;
      const leftMs = untilMs - clock.now();
      if (!error.retry || leftMs < pauseMs) {
        // A lost answer may have been a yes, so the key pair stays unless the site has said no.
        if (error.code !== undefined && !error.retry) forgetDraft(stateDir);
        throw new StartFailure(error.retry ? exitCodes.unavailable : exitCodes.config, error.message, { cause: error });
      }
      say(`${error.message} Trying again for ${Math.round(leftMs / 1_000)} s.`);
      await sleep(clock, pauseMs, means.signal);
    }
  }
}

/** One join line on its way to a pairing, over as many attempts as the network takes. */
class Joining {
  readonly #line: JoinLine;
  readonly #before: Pairing | undefined;
  readonly #means: JoinMeans;
  #draft: PairingDraft | undefined;
  #site: Site | undefined;

  constructor(line: JoinLine, before: Pairing | undefined, means: JoinMeans) {
    this.#line = line;
    this.#before = before;
    this.#means = means;
  }

  async attempt(): Promise<Pairing> {
    const { id, secret, origin } = this.#line;
    const kept = (this.#draft ??= await this.#prepare());
    const site = (this.#site ??= openSite({ ...kept, environment: this.#means.environment }));
    const { challenge, site: siteOfUrl } = await askSite(site, { method: "GET", path: challengePath }, challengeAnswer);
    this.#insistOnLeave(siteOfUrl);
    writeDraft(this.#means.stateDir, kept);
    const { publicKey } = kept;
    const key = joinKey(secret);
    const proven = { join: id, publicKey, site: siteOfUrl, challenge };
    const body = { join: id, public_key: publicKey, challenge, proof: agentProof(key, proven) };
    const answer = await askSite(site, { method: "POST", path: pairPath, body }, pairAnswer);
    const { machine } = answer;
    if (answer.site !== siteOfUrl || !provesSame(answer.proof, siteProof(key, { ...proven, machine }))) {
      throw new SiteFailure(
        `${origin} does not prove that it made this join line, so nothing was kept: something between here and the site may pose as it.`,
        { retry: false },
      );
    }
    return { ...kept, site: siteOfUrl, machine, pairedAt: new Date(this.#means.clock.wall()).toISOString() };
  }

  async #prepare(): Promise<PairingDraft> {
    const { origin, id: join, certificateSha256: sha256 } = this.#line;
    const { environment, stateDir } = this.#means;
    const before = readDraft(stateDir, { origin, join });
    if (before !== undefined) return before;
    const pin = sha256 === undefined ? undefined : { path: challengePath, sha256 };
    const certificate = pin && (await pinnedCertificate({ origin, environment }, pin));
    return { origin, join, ...newMachineKeyPair(), ...(certificate !== undefined && { certificate }) };
  }

  /** A machine has one site. A pairing with another one is replaced only where a person says so. */
  #insistOnLeave(site: string): void {
    const before = this.#before;
    if (before === undefined || before.site === site || this.#means.replace) return;
    throw new StartFailure(
      exitCodes.config,
      `This machine is '${before.machine}' of ${before.origin} already (${pairingFile(this.#means.stateDir)}): add --replace to leave that site, or set TRUNKLINE_STATE_DIR to another folder to be in both.`,
    );
  }
}
