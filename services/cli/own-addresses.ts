import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Lifecycle } from "#shared/process/lifecycle.ts";
import { writeStateFile } from "#shared/process/state-folder.ts";
import { isLoopback } from "#shared/protocol/pairing.ts";

/** A URL of this host. Commands send their keys there, so that a file in a foreign folder must not lead elsewhere. */
const ownUrl = z.url({ protocol: /^https?$/ }).refine((text) => isLoopback(new URL(text).hostname));
const addresses = z.object({
  baseUrl: ownUrl.optional().catch(undefined),
  operationsUrl: ownUrl.optional().catch(undefined),
});
type OwnAddresses = z.output<typeof addresses>;

function addressesFile(stateDir: string): string {
  return join(stateDir, "addresses.json");
}

/** Keeps the addresses of a running `trunkline up` in its state folder, for the commands of this host, until it stops. */
export function noteAddresses(
  stateDir: string,
  noted: { readonly baseUrl: string; readonly operationsUrl: string },
  lifecycle: Pick<Lifecycle, "onStop">,
): void {
  const file = addressesFile(stateDir);
  const text = `${JSON.stringify(noted)}\n`;
  writeStateFile(file, text);
  lifecycle.onStop("addresses", () => {
    // Another process may have started on this folder meanwhile.
    if (textOf(file) === text) rmSync(file, { force: true });
  });
}

/** Returns the addresses of the `trunkline up` that runs on this state folder, as far as they are known. */
export function ownAddresses(stateDir: string): OwnAddresses {
  try {
    return addresses.parse(JSON.parse(textOf(addressesFile(stateDir))));
  } catch {
    return {};
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
