import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { faultEntry, isFaultCode } from "#shared/fault/fault.ts";
import { type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import { defaultPorts, type Environment, portNumber, readConfig, secret, urlList } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { isLoopback } from "#shared/protocol/pairing.ts";
import { codeOf } from "../terminal/command-line.ts";
import { readKept, upFiles } from "./up-state.ts";

/** How a command finds a gateway and a key: by its options, the environment, and what `trunkline up` keeps on this host. */

export const siteUrl = urlList(["http:", "https:"]).refine((text) => URL.canParse(text), "must be one URL");
const folderSettings = keyStoreSettings.pick({ stateDir: true });

const publicSettings = folderSettings.extend({
  baseUrl: siteUrl.optional(),
  port: portNumber.optional(),
  /** Set when a gateway on this host serves HTTPS. */
  tlsCert: z.string().optional(),
});

/** Returns the base URL that the command line or the environment names, or that of the gateway on this host. */
export function baseUrlOf(environment: Environment, given: string | undefined): string {
  const { baseUrl, tlsCert, ...local } = readConfig(publicSettings, environment);
  const base = given ?? baseUrl ?? localUrl({ ...local, tlsCert }, "baseUrl", defaultPorts.public);
  return `${base.replace(/(?<!\/)\/+$/, "").replace(/\/v1$/, "")}/v1`;
}

const operationsSettings = folderSettings.extend({
  operationsUrl: siteUrl.optional(),
  operationsPort: portNumber.optional(),
  /** Set when a gateway on this host serves HTTPS on its operations port. */
  operationsTlsCert: z.string().optional(),
  /** The certificate authority of the operations port, when it is not a public one. */
  operationsCa: z.string().optional(),
});

/** Returns the URL of the operations port, and the file of its certificate authority if it is not a public one. */
export function operationsOf(
  environment: Environment,
  given: string | undefined,
): { readonly url: string; readonly caFile: string | undefined } {
  const settings = readConfig(operationsSettings, environment);
  const { stateDir, operationsPort: port, operationsTlsCert: tlsCert } = settings;
  return {
    url:
      given ??
      settings.operationsUrl ??
      localUrl({ stateDir, port, tlsCert }, "operationsUrl", defaultPorts.operations),
    caFile: settings.operationsCa ?? tlsCert,
  };
}

/** A URL of this host. Commands send their keys there, so that a file in a foreign folder must not lead elsewhere. */
const ownUrl = z.url({ protocol: /^https?$/ }).refine((text) => isLoopback(new URL(text).hostname));
const addresses = z.object({
  baseUrl: ownUrl.optional().catch(undefined),
  operationsUrl: ownUrl.optional().catch(undefined),
});

/** Returns the URL of a gateway on this host. Without a configured port it is that of a running `trunkline up`, if known. */
function localUrl(
  { stateDir, port, tlsCert }: Omit<z.output<typeof publicSettings>, "baseUrl">,
  kind: keyof z.output<typeof addresses>,
  defaultPort: number,
): string {
  const noted = port === undefined ? notedUrl(stateDir, kind) : undefined;
  return noted ?? `${tlsCert === undefined ? "http" : "https"}://127.0.0.1:${port ?? defaultPort}`;
}

/** Returns the URL that a running `trunkline up` keeps in its state folder. */
export function notedUrl(stateDir: string, kind: keyof z.output<typeof addresses>): string | undefined {
  return addresses.safeParse(jsonIn(readKept(resolve(stateDir, upFiles.addresses)))).data?.[kind];
}

export interface KeyAtHand {
  readonly token: KeyToken;
  /** The place where the key was found, for messages. */
  readonly place: string;
}

const keyText = secret(z.string().optional());

/** The keys that commands take: the variable of each, and the file in which `trunkline up` keeps its own. */
const wantedKeys = {
  model: {
    name: "API key",
    prefix: "trunkline_",
    making: "`trunkline login` and `trunkline keys issue --name me` make one",
    variable: "TRUNKLINE_KEY",
    settings: z.object({ key: keyText }),
    file: upFiles.apiKey,
  },
  admin: {
    name: "admin key",
    prefix: "trunkline_admin_",
    making: "`trunkline keys issue --admin --name console` makes one",
    variable: "TRUNKLINE_ADMIN_KEY",
    settings: z.object({ adminKey: keyText }),
    file: upFiles.adminKey,
  },
} as const;
type WantedKey = keyof typeof wantedKeys;

/** Returns a key of the environment, as text. */
export function configuredKey(wanted: WantedKey, environment: Environment): string | undefined {
  return Object.values(readConfig(wantedKeys[wanted].settings, environment))[0];
}

/** Returns the key of a command: the one in the environment, or else the one that `trunkline up` keeps. */
export function findKey(wanted: WantedKey, environment: Environment): KeyAtHand {
  const given = configuredKey(wanted, environment);
  if (given !== undefined) return readKey(wanted, given, wantedKeys[wanted].variable);
  const file = resolve(readConfig(folderSettings, environment).stateDir, wantedKeys[wanted].file);
  return readKey(wanted, readOwn(wanted, file), file);
}

/**
 * Reads a key, and refuses any other text than one of the right kind, so that it is not sent to a gateway. An admin key
 * may be a viewer key.
 */
export function readKey(wanted: WantedKey, text: string, place: string): KeyAtHand {
  const { name, prefix, making } = wantedKeys[wanted];
  const parsed = parseKeyToken(text.trim());
  if (parsed.outcome === "parsed" && (parsed.token.kind === "model") === (wanted === "model"))
    return { token: parsed.token, place };
  throw new StartFailure(
    exitCodes.config,
    `What is in ${place} is no ${name}, which begins with ${prefix}: ${making}.`,
  );
}

function readOwn(wanted: WantedKey, file: string): string {
  const { name, making, variable } = wantedKeys[wanted];
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = codeOf(error) === "ENOENT" ? "is not there" : "cannot be read";
    throw new StartFailure(
      exitCodes.config,
      `This takes an ${name}, and there is none: set ${variable} to one (${making}), or ` +
        `TRUNKLINE_STATE_DIR to the folder in which \`trunkline up\` keeps its own (${file} ${why}).`,
      { cause: error },
    );
  }
}

/** Returns the status of an error by its code. An error after the first line has no HTTP status of its own. */
export function statusOf(code: string | null): number {
  return code !== null && isFaultCode(code) ? faultEntry(code).status : 500;
}

export function whyUnreachable(url: string, error: unknown): string {
  const code = codeOf(error);
  return code === "ECONNREFUSED" ? `Nothing listens at ${url}` : `${url} cannot be reached (${code})`;
}
