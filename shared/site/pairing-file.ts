import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { assertOwnFolder, makeStateFolder, writeStateFile } from "../process/state-folder.ts";
import { jsonIn } from "../protocol/frame-payload.ts";
import { machineName } from "../protocol/identifiers.ts";
import { machineKey, pairRequest, siteId } from "../protocol/pairing.ts";

/** The key pair of a machine and its site, before the site has accepted it. */
const draft = z.object({
  /** The site's URL without a path. */
  origin: z.url(),
  /** The join line that the key pair is for. */
  join: pairRequest.shape.join,
  publicKey: machineKey,
  seed: z.string().regex(/^SU[A-Z2-7]{56}$/),
  /** The site's certificate in PEM form, where the join line has its pin. */
  certificate: z.string().optional(),
});
export type PairingDraft = Readonly<z.infer<typeof draft>>;

/** A machine's pairing with a site, as the agent keeps it. The seed is the machine's credential. */
const pairing = draft.extend({ site: siteId, machine: machineName, pairedAt: z.iso.datetime() });
export type Pairing = Readonly<z.infer<typeof pairing>>;

export function pairingFile(stateDir: string): string {
  return join(stateDir, "pairing.json");
}

function draftFile(stateDir: string): string {
  return join(stateDir, "pairing.json.new");
}

/** Returns the pairing of this machine, or undefined when there is none. Throws for a file that is no pairing. */
export function readPairing(stateDir: string): Pairing | undefined {
  assertOwnFolder(stateDir);
  const file = pairingFile(stateDir);
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  const read = pairing.safeParse(jsonIn(text)).data;
  if (read !== undefined) return read;
  throw new StartFailure(
    exitCodes.config,
    `The file ${file} is no pairing: restore it, or remove it and pair this machine anew with a join line of its site.`,
  );
}

/** Keeps a pairing, and forgets the draft that it was made of. */
export function writePairing(stateDir: string, kept: Pairing): void {
  makeStateFolder(stateDir);
  writeStateFile(pairingFile(stateDir), `${JSON.stringify(kept, null, 2)}\n`);
  forgetDraft(stateDir);
}

/** Returns the draft that an earlier attempt with the same join line left, as when the site's answer was lost. */
export function readDraft(stateDir: string, { origin, join: id }: Pick<PairingDraft, "origin" | "join">) {
  const read = draft.safeParse(jsonIn(readIfThere(draftFile(stateDir)) ?? "")).data;
  return read?.origin === origin && read.join === id ? read : undefined;
}

/** Keeps a key pair before it is sent, so that no accepted key pair is ever lost. */
export function writeDraft(stateDir: string, kept: PairingDraft): void {
  makeStateFolder(stateDir);
  writeStateFile(draftFile(stateDir), `${JSON.stringify(kept, null, 2)}\n`);
}

export function forgetDraft(stateDir: string): void {
  rmSync(draftFile(stateDir), { force: true });
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartFailure(exitCodes.config, `The file ${file} cannot be read (${reason}): let this user read it.`);
  }
}
