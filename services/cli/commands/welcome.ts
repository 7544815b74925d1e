import { existsSync, readFileSync, realpathSync } from "node:fs";
import { isSea } from "node:sea";
import { delimiter, join, relative } from "node:path";
import { z } from "zod";
import type { Model } from "#shared/protocol/model.ts";
import type { Environment } from "#shared/process/config.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import type { ProgramFacts } from "../service/copy-program.ts";

interface Welcome {
  /** The base URL of the endpoints on this host, including `/v1`. */
  readonly baseUrl: string;
  /** The URL by which other hosts reach them, without a path. */
  readonly publicUrl?: string | undefined;
  /** The console, and a link that signs in to it. Without the link the output may be read by others. */
  readonly console: { readonly url: string; readonly link: string | undefined };
  readonly key: string;
  /** Shown in place of the key where other people can read the output. */
  readonly keyFile?: string | undefined;
  readonly runtime: string | null;
  readonly machine: string;
  readonly models: readonly Model[];
  /** Starts this program once more. */
  readonly command: string;
  readonly platform?: string;
}

/** Returns the message that `trunkline up` prints when it is ready: the URL, the key, and a command to paste. */
export function welcome(given: Welcome): string {
  const { publicUrl, key, keyFile, models, command, platform = process.platform } = given;
  const shell = shellOn(platform);
  const chats = models.find(({ capabilities }) => capabilities.completion);
  const baseUrl = publicUrl === undefined ? given.baseUrl : `${publicUrl}/v1`;
  const shownKey = keyFile === undefined ? key : shell.fileText(keyFile);
  const chat = chats && `${command} chat ${wordOf(chats.id, shell)} 'Hello!'`;
  const byHttp = chats && shell.chat({ baseUrl, key: shownKey, model: chats.id });
  const first = [
    ...(publicUrl === undefined ? [] : [pairing(command)]),
    ...(chat === undefined
      ? []
      : [`${firstChat}\n\n  ${chat}\n\nThe same by HTTP, as events of a stream:\n\n${byHttp}`]),
    ...(publicUrl === undefined && chat === undefined ? [noModelYet] : []),
  ];
  const here = new URL(given.baseUrl).origin;
  const leadsHere =
    publicUrl === undefined || publicUrl === here ? "" : `\n  Here      ${here}, to which ${publicUrl} must lead`;
  return `
Trunkline is ready.

  Base URL  ${baseUrl}${leadsHere}
  API key   ${keyFile === undefined ? key : `in the file ${keyFile}`}
  Machine   ${given.machine}
  Runtime   ${runtimeLine(given.runtime)}
  Models    ${models.length === 0 ? "none yet" : listed(models.map(({ id }) => id))}
  API page  ${new URL("/docs", baseUrl).href}
  Console   ${given.console.link ?? `${given.console.url}, where a link of \`${command} console\` signs you in`}

${first.join("\n\n")}

Ctrl-C stops it.
`;
}

const pairing = (command: string): string =>
  `To pair a GPU machine, name it in another terminal, in this folder and with the same TRUNKLINE_ variables. Paste the line that
this prints on the machine:

  ${command} machines pair attic`;

const firstChat =
  "A first chat, to paste into another terminal, in this folder and with the same TRUNKLINE_ variables:";

const noModelYet = `There is no model to chat with yet: \`ollama pull llama3.2\` gets one, and it is served within seconds.`;

function runtimeLine(runtime: string | null): string {
  if (runtime === "scripted")
    return "scripted: a demonstration without a model; it gives way to an Ollama as soon as one answers";
  return runtime === null ? "none answers yet; models appear as soon as one does" : onOneLine(runtime);
}

function listed(models: readonly string[]): string {
  const shown = onOneLine(models.slice(0, 8).join(", "));
  return models.length > 8 ? `${shown} and ${models.length - 8} more` : shown;
}

/** The shell of a platform: how it quotes a text, runs a program and begins a chat. */
interface Shell {
  /**
   * Quotes a text. A runtime chooses the names of its models: a name must neither run as a command nor control the
   * terminal that shows it.
   */
  quoted(text: string): string;
  /** Stands before a program whose name is quoted. */
  readonly call: string;
  /** Returns the content of a file as an argument. */
  fileText(path: string): string;
  chat(about: { readonly baseUrl: string; readonly key: string; readonly model: string }): string;
}

const messages = [{ role: "user", content: "Hello!" }];

const posixShell: Shell = {
  quoted: (text) => `'${onOneLine(text).replaceAll("'", String.raw`'\''`)}'`,
  call: "",
  fileText: (path) => `$(cat ${posixShell.quoted(path)})`,
  chat: ({ baseUrl, key, model }) => `  curl -N ${baseUrl}/chat/completions \\
    -H "Authorization: Bearer ${key}" \\
    -H "Content-Type: application/json" \\
    -d ${posixShell.quoted(JSON.stringify({ model, stream: true, messages }))}`,
};

const powerShell: Shell = {
  // PowerShell takes typographic quotes for quotes too.
  quoted: (text) => `'${onOneLine(text).replaceAll(/['\u2018-\u201b]/g, "$&$&")}'`,
  call: "& ",
  fileText: (path) => `$(Get-Content ${powerShell.quoted(path)})`,
  chat: ({ baseUrl, key, model }) =>
    `  (Invoke-RestMethod ${baseUrl}/chat/completions -Method Post -ContentType application/json ` +
    `-Headers @{ Authorization = "Bearer ${key}" } ` +
    `-Body ${powerShell.quoted(JSON.stringify({ model, messages }))}).choices[0].message.content`,
};

function shellOn(platform: string): Shell {
  return platform === "win32" ? powerShell : posixShell;
}

/** Returns a text as one word of the shell, quoted where it needs to be. */
function wordOf(text: string, shell: Shell): string {
  return /^[\w./:@=+-]+$/.test(text) ? text : shell.quoted(text);
}

export interface ProgramStart extends Omit<ProgramFacts, "path"> {
  readonly environment: Environment;
  readonly platform: string;
}

/** Returns the command that starts this program once more from the same folder, as a person types it. */
export function ownCommand({ environment, script, execPath, isExecutable, platform }: ProgramStart): string {
  const shell = shellOn(platform);
  const word = (text: string): string => wordOf(text, shell);
  const program = (text: string): string => (word(text) === text ? text : `${shell.call}${word(text)}`);
  if (isExecutable || script === undefined) return program(execPath);
  const main = realpathSync(script);
  if (main.endsWith(".ts")) {
    const linked = join(main, "../../../node_modules/.bin/trunkline");
    return existsSync(linked) ? program(relative("", linked)) : `${program(execPath)} ${word(script)}`;
  }
  const [fetched, ...more] = environment["npm_command"] === "exec" ? packagesOfNpx(main).map(word) : [];
  if (more.length > 0) return `npx -y ${[fetched, ...more].map((each) => `-p ${each}`).join(" ")} trunkline`;
  if (fetched !== undefined) return `npx -y ${fetched}`;
  return isOnPath(main, environment) ? "trunkline" : `node ${word(main)}`;
}

/** Returns the command that starts this process once more. */
export function ownCommandHere(environment: Environment): string {
  const { argv, execPath, platform } = process;
  return ownCommand({ environment, script: argv[1], execPath, isExecutable: isSea(), platform });
}

const npxFolder = z.object({ _npx: z.object({ packages: z.array(z.string()) }) });

/** Returns the packages that npx was given, as it notes them beside what it installed. */
function packagesOfNpx(main: string): readonly string[] {
  try {
    const [folder = ""] = main.split(/[\\/]node_modules[\\/]/);
    return npxFolder.parse(JSON.parse(readFileSync(join(folder, "package.json"), "utf8")))._npx.packages;
  } catch {
    return [];
  }
}

/** Returns true if a shell finds this program under its own name. On Windows npm links it by a script beside it. */
function isOnPath(main: string, { PATH = "" }: Environment): boolean {
  const folders = PATH.split(delimiter).filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]/.test(folder));
  return folders.some((folder) =>
    [join(folder, "trunkline"), join(folder, "node_modules", "trunkline", "dist", "main.js")].some(
      (file) => existsSync(file) && realpathSync(file) === main,
    ),
  );
}
