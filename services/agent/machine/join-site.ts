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

export interface JoinMeans {
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
  const { stateDir, environment, clock, say } = means;
  const before = readPairing(stateDir);
  if (before?.join === line.id && before.origin === line.origin) return before;
  const untilMs = clock.now() + triedForMs;
  let draft: PairingDraft | undefined;
  let site: Site | undefined;
  for (;;) {
    try {
      draft ??= await prepareDraft(line, means);
      site ??= openSite({ ...draft, environment });
      const paired = await pairWith(site, { line, before, draft }, means);
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

async function prepareDraft(
  { origin, id: join, certificateSha256: sha256 }: JoinLine,
  { environment, stateDir }: JoinMeans,
): Promise<PairingDraft> {
  const before = readDraft(stateDir, { origin, join });
  if (before !== undefined) return before;
  const pin = sha256 === undefined ? undefined : { path: challengePath, sha256 };
  const certificate = pin && (await pinnedCertificate({ origin, environment }, pin));
  return { origin, join, ...newMachineKeyPair(), ...(certificate !== undefined && { certificate }) };
}

interface Joining {
  readonly line: JoinLine;
  readonly before: Pairing | undefined;
  readonly draft: PairingDraft;
}

/** Makes one attempt to pair. The draft is kept before anything of it is sent. */
async function pairWith(site: Site, { line, before, draft }: Joining, means: JoinMeans): Promise<Pairing> {
  const { id, secret, origin } = line;
  const { challenge, site: siteOfUrl } = await askSite(site, { method: "GET", path: challengePath }, challengeAnswer);
  assertLeave(before, siteOfUrl, means);
  writeDraft(means.stateDir, draft);
  const { publicKey } = draft;
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
  return { ...draft, site: siteOfUrl, machine, pairedAt: new Date(means.clock.wall()).toISOString() };
}

/** A machine has one site. A pairing with another one is replaced only where a person says so. */
function assertLeave(before: Pairing | undefined, site: string, { replace, stateDir }: JoinMeans): void {
  if (before === undefined || before.site === site || replace) return;
  const message = `This machine is '${before.machine}' of ${before.origin} already (${pairingFile(stateDir)}): add --replace to leave that site, or set TRUNKLINE_STATE_DIR to another folder to be in both.`;
  throw new StartFailure(exitCodes.config, message);
}
