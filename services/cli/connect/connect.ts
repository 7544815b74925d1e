import { hostname } from "node:os";
import { createInterface } from "node:readline";
import { Argument, type Command } from "commander";
import { type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { formatDuration } from "#shared/process/quantities.ts";
import { aliasedId, type Model } from "#shared/protocol/model.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { onOneLine, scrub } from "#shared/process/clean-text.ts";
import { listSiteModels } from "../site/chat-client.ts";
import { commandIn, readBy, type CliContext } from "../terminal/command-line.ts";
import { interruptedCode, untilInterrupted } from "../terminal/interrupt.ts";
import { baseUrlOf, configuredKey, readKey, siteUrl } from "../site/find-gateway.ts";
import { loginInUse } from "../site/logins.ts";
import { connectMark, nameOption, scopesHelp, scopesOption, ttlOption } from "../terminal/key-options.ts";
import { type OperationsOptions, operationsUrlOption } from "../site/operations-port.ts";
import { placesOf } from "../site/places.ts";
import { type Client, plainId, type SiteFacts } from "./client.ts";
import { chatApps } from "./chat-apps.ts";
import { codingAgents } from "./coding-agents.ts";
import { type Connection, Connections, isChanged, readText } from "./connections.ts";
import { editors } from "./editors.ts";
import { type KeyIssuer, keyIssuer } from "./issue-site-key.ts";
import { type PlannedFile, planConnection, showDiff } from "./plan-connection.ts";

interface Options extends OperationsOptions {
  readonly url?: string;
  readonly key?: KeyToken | string | true;
  readonly model?: string;
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly ttl: number;
  readonly print?: true;
  readonly yes?: true;
  readonly force?: true;
  readonly undo?: true;
}

const clients = [...codingAgents, ...editors, ...chatApps];
/** Stands for the key wherever a configuration is shown. */
const shownKey = "trunkline_…";

/** Makes the command `trunkline connect <client>`, which writes the configuration of a program for a site. */
export function connectCommand(context: CliContext): Command {
  const names = clients.map(({ name }) => name);
  return commandIn("connect", context)
    .addArgument(new Argument("<client>", clients.map(({ title }) => title).join(", ")).choices(names))
    .option("--url <url>", "the site (TRUNKLINE_BASE_URL); otherwise the gateway here", readBy(siteUrl))
    .option("--model <model>", "the model to begin with; may be left out where only one fits")
    .option("--key [key]", "use this key, or the one in TRUNKLINE_KEY, and issue none")
    .addOption(nameOption().default(undefined, "the client and this host"))
    .addOption(scopesOption().default(undefined, "*, every model"))
    .addOption(ttlOption("how long the key is valid"))
    .addOption(operationsUrlOption())
    .option("--print", "show the files that it would write; issue no key, and change nothing")
    .option("--yes", "write without a question, but replace no setting of your own")
    .option("--force", "write without a question, and replace settings of your own")
    .option("--undo", "restore the files as they were before, byte for byte")
    .more(`
It shows what it changes and asks first. Everything else in a file stays, comments too. Models, windows and tools are
those of the live site. Files that hold a key are readable by you alone.

After "trunkline login" at the site it uses that key. Otherwise it issues a key as "trunkline keys issue" does; again on
the same host it extends that key, unless --name or --scopes say otherwise. For a site elsewhere name a key (--key), or its
operations port (--operations-url) with an admin key in TRUNKLINE_ADMIN_KEY. --print asks for the models with --key, the key in the files
of an earlier connection, the one that "trunkline up" keeps or TRUNKLINE_KEY, or the admin key.
${scopesHelp}

Examples:
  trunkline connect claude
  trunkline connect codex --model qwen3-coder:30b --print
  TRUNKLINE_KEY=… trunkline connect opencode --url https://models.example.org --key
  trunkline connect claude --undo`)
    .action(async (name: string, given: Options) => {
      const client = clients.find((each) => each.name === name);
      if (client === undefined) throw new Error(`no client is called ${name}`);
      await (given.undo ? undo : given.print ? print : connect)(client, withLogin(given, context), context);
    });
}

/** Adds the key of a login, unless the command line names another key or a place that issues one. */
function withLogin(given: Options, context: CliContext): Options {
  const { key, operationsUrl, name, scopes } = given;
  const isOther = [key, operationsUrl, name, scopes].some((each) => each !== undefined);
  const login = isOther ? undefined : loginInUse(context.environment, given.url, "--url");
  return login === undefined ? given : { ...given, key: login.key, url: login.baseUrl };
}

async function connect(client: Client, given: Options, context: CliContext): Promise<void> {
  const { stdout, stderr, environment } = context;
  const connections = new Connections(placesOf(context.environment));
  const earlier = connections.find(client.name);
  refuseChanged(earlier, client, context);
  using interrupted = untilInterrupted();
  const { signal } = interrupted;
  const issuer = given.key === undefined ? keyIssuer(given, context) : undefined;
  /** The key that was issued for files that are not written yet. */
  let unused: KeyToken | undefined;
  try {
    const list = modelLister(given, context, signal);
    const kept = issuer && keptKey(earlier, issuer, given);
    const known = kept && (await list(kept).catch(unlessRefused));
    if (issuer !== undefined && known === undefined) unused = await issuer.issue(newKey(client, given));
    const key = unused ?? kept ?? givenKey(given, context);
    const all = known ?? (await list(key));
    const plan = planner(client, { all, earlier, given }, context);
    const shown = plan(shownKey);
    for (const { file, before, after } of shown.files) {
      stderr.write(`${file}:\n${scrub(showDiff(before ?? "", after))}\n`);
    }
    await agree(shown.files, { given, signal }, context);
    if (unused === undefined) await extend(issuer, key, given, context);
    const record = issuer === undefined ? {} : { key: { id: key.id, place: issuer.place } };
    connections.write(client.name, plan(key.reveal()).files, { ...record, earlier });
    unused = undefined;
    if (earlier?.key?.id !== key.id) await revokeOld(earlier?.key, given, context);
    for (const line of [...client.next(shown.facts), ...authorityNote(shown.facts.origin, environment)])
      stdout.write(`${line}\n`);
  } catch (error) {
    throw signal.aborted ? new StartFailure(interruptedCode, "Interrupted: nothing was written.") : error;
  } finally {
    if (unused !== undefined) await issuer?.revoke(unused.id);
  }
}

/** Shows the files that `connect` would write. */
async function print(client: Client, given: Options, context: CliContext): Promise<void> {
  const earlier = new Connections(placesOf(context.environment)).find(client.name);
  refuseChanged(earlier, client, context);
  const list = modelLister(given, context);
  const issuer = given.key === undefined ? keyIssuer(given, context) : undefined;
  const kept = issuer && keptKey(earlier, issuer, given);
  const known = kept && (await list(kept).catch(unlessRefused));
  const all = known ?? (await (issuer === undefined ? list(givenKey(given, context)) : issuer.models(list)));
  const { files } = planner(client, { all, earlier, given }, context)(shownKey);
  context.stdout.write(files.map(({ file, after }) => `# ${file}\n${scrub(after)}`).join("\n"));
}

/** Returns a function that asks the site for the models of a key. */
function modelLister({ url }: Options, { environment }: CliContext, signal?: AbortSignal) {
  const baseUrl = baseUrlOf(environment, url);
  return (key: KeyToken) => listSiteModels({ baseUrl, key, option: "--url" }, signal);
}

/** Chooses among all models those for the client, and returns a function that plans its files with a key. */
function planner(
  client: Client,
  { all, earlier, given }: { all: readonly Model[]; earlier: Connection | undefined; given: Options },
  context: CliContext,
): (key: string) => { facts: SiteFacts; files: readonly PlannedFile[] } {
  const isAble = ({ capabilities: { completion, tools } }: Model): boolean =>
    completion && (tools || !client.needsTools);
  const models = all.filter((each) => isAble(each) && plainId.test(each.id));
  const odd = all.filter(({ id }) => !plainId.test(id));
  if (odd.length > 0) {
    context.stderr.write(`Left out, since programs may take their ids for commands: ${idsOf(odd)}.\n`);
  }
  const model = chooseModel(models, { all, client, wanted: given.model });
  const origin = baseUrlOf(context.environment, given.url).replace(/\/v1$/, "");
  return (key) => {
    const facts = { origin, key, model, models, places: placesOf(context.environment) };
    const before = new Map(earlier?.files.map((each) => [each.file, each.before?.toString()]));
    const read = (file: string): string | undefined => (before.has(file) ? before.get(file) : readText(file));
    return { facts, files: planConnection(client, facts, read) };
  };
}

async function undo(client: Client, given: Options, context: CliContext): Promise<void> {
  const connections = new Connections(placesOf(context.environment));
  const connection = connections.find(client.name);
  if (connection === undefined) {
    throw new StartFailure(exitCodes.failed, `${client.title} is not connected: there is nothing to undo.`);
  }
  if (!given.force) refuseChanged(connection, client, context);
  connections.undo(client.name, connection);
  for (const { file, before } of connection.files) {
    context.stdout.write(`${before === null ? "Removed" : "Restored"} ${file}\n`);
  }
  await revokeOld(connection.key, given, context);
}

/** Refuses a connection whose files have changed since, and shows what an undo would lose. */
function refuseChanged(connection: Connection | undefined, client: Client, { stderr }: CliContext): void {
  const changed = connection?.files.filter(isChanged) ?? [];
  if (changed.length === 0) return;
  for (const { file, after } of changed) {
    stderr.write(`${file} has changed since:\n${scrub(showDiff(after.toString(), readText(file) ?? ""))}\n`);
  }
  const command = `\`trunkline connect ${client.name} --undo --force\``;
  throw new StartFailure(
    exitCodes.failed,
    `${changed.map(({ file }) => file).join(" and ")} changed after ${client.title} was connected. An undo loses the lines with + and brings back those with -. Save what you need, then use ${command}.`,
  );
}

/** Revokes the key of a connection that is gone, or names the command: another folder or site may have issued it. */
async function revokeOld(key: Connection["key"], given: Options, context: CliContext): Promise<void> {
  if (key === undefined) return;
  try {
    const issuer = keyIssuer(given, context);
    if (issuer.place === key.place) {
      await issuer.revoke(key.id);
      context.stderr.write(`Revoked the old key ${key.id}.\n`);
      return;
    }
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
  }
  context.stderr.write(
    `The old key ${key.id}, issued by ${key.place}, stays valid: \`trunkline keys revoke ${key.id}\` there takes it back.\n`,
  );
}

/** Returns a note about the authority of the site. Most clients are programs of Node and read the same variable. */
function authorityNote(baseUrl: string, { NODE_EXTRA_CA_CERTS: file }: Environment): readonly string[] {
  return file && baseUrl.startsWith("https:")
    ? [`Set NODE_EXTRA_CA_CERTS=${file} where it runs, too: the certificate of the site may need it.`]
    : [];
}

/** Returns the key in the files of a connection, if this site issued it and the command line asks for no other. */
function keptKey(earlier: Connection | undefined, { place }: KeyIssuer, given: Options): KeyToken | undefined {
  if (earlier?.key?.place !== place || given.name !== undefined || given.scopes !== undefined) return undefined;
  const texts = earlier.files.flatMap(({ after }) => after.toString().match(/trunkline_\w+/g) ?? []);
  const tokens = texts.map(parseKeyToken).flatMap((parsed) => (parsed.outcome === "parsed" ? [parsed.token] : []));
  return tokens.find(({ id }) => id === earlier.key?.id);
}

/** Returns undefined for a site that refuses the key. */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof StartFailure) || error.exitCode !== exitCodes.config) throw error;
}

/** Extends a key that stays, if this site issued it. */
async function extend(issuer: KeyIssuer | undefined, { id }: KeyToken, { ttl }: Options, { stderr }: CliContext) {
  try {
    if (issuer === undefined) return;
    const [oldUntil] = await issuer.extend(id, ttl);
    const rotated = oldUntil && `was rotated: its secret in these files ends at ${oldUntil}. --name issues another key`;
    stderr.write(`The key ${id} ${rotated ?? `stays, and is valid for ${formatDuration(ttl)} from now`}.\n`);
  } catch (error) {
    if (!(error instanceof StartFailure)) throw error;
    stderr.write(`The key ${id} stays, and was not extended: ${error.message}\n`);
  }
}

function newKey(
  { name: client }: Client,
  { name = `${client} on ${hostname()}`, scopes = ["*"], ttl: ttlMs }: Options,
) {
  return { name: `${name.slice(0, 100 - connectMark.length)}${connectMark}`, scopes, ttlMs };
}

/** Returns the key of `--key`, or that of a login. */
function givenKey({ key: given = "" }: Options, { environment }: CliContext): KeyToken {
  if (typeof given === "object") return given;
  const [text = "", place] = given === true ? [configuredKey("model", environment), "TRUNKLINE_KEY"] : [given, "--key"];
  if (text !== "") return readKey("model", text, place).token;
  throw new StartFailure(exitCodes.config, `There is no key in ${place}: set it to an API key, or leave out --key.`);
}

function idsOf(models: readonly Model[]): string {
  return onOneLine(models.map(({ id }) => id).join(", ")) || "none";
}

function chooseModel(
  models: readonly Model[],
  { all, client, wanted }: { all: readonly Model[]; client: Client; wanted: string | undefined },
): Model {
  if (wanted !== undefined) {
    const found = models.find(({ id }) => id === wanted || id === aliasedId(wanted));
    if (found !== undefined) return found;
    const why = all.some(({ id }) => id === wanted) ? `does not fit ${client.title}` : "is not on the site";
    throw new StartFailure(exitCodes.failed, `The model ${wanted} ${why}. Those that fit: ${idsOf(models)}.`);
  }
  const [only, ...others] = models;
  if (only === undefined) {
    const need = client.needsTools ? "a chat model that calls tools" : "a chat model";
    throw new StartFailure(exitCodes.failed, `${client.title} needs ${need}, and the site has ${idsOf(all)}.`);
  }
  if (others.length === 0) return only;
  const several = `Several models fit ${client.title}: name one with --model. There are ${idsOf(models)}.`;
  throw new StartFailure(exitCodes.usage, several);
}

/** Asks for leave to write. Without a terminal, an option must give it. */
async function agree(
  files: readonly PlannedFile[],
  { given, signal }: { readonly given: Options; readonly signal: AbortSignal },
  { stdin = process.stdin, stderr }: CliContext,
): Promise<void> {
  const replaced = files.flatMap(({ file, overwrites }) => overwrites.map((what) => `${what} in ${file}`));
  if (given.force || (given.yes && replaced.length === 0)) return;
  const warning = replaced.length === 0 ? "" : `This replaces what you have: ${replaced.join(", ")}. `;
  if (!stdin.isTTY || given.yes) {
    const option = replaced.length === 0 ? "--yes" : "--force";
    throw new StartFailure(exitCodes.usage, `${warning}Nothing was written: ${option} writes without a question.`);
  }
  stderr.write(`${warning}Write? [y/N] `);
  // Left open, it would read on and keep the process alive.
  using lines = createInterface({ input: stdin, signal });
  for await (const line of lines) {
    if (/^y(es)?$/i.test(line.trim())) return;
    break;
  }
  throw new StartFailure(exitCodes.failed, "Nothing was written.");
}
