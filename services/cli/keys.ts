import { changeKey } from "#shared/keys/change-key.ts";
import { Command, InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { duration } from "#shared/keys/duration.ts";
import { issueKey } from "#shared/keys/issue-key.ts";
import { keyName, keyState, type KeyRecord } from "#shared/keys/key-record.ts";
import { keyId } from "#shared/keys/key-token.ts";
import { scopes } from "#shared/keys/scope.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";
import { alignedTable } from "./aligned-table.ts";
import { withKeyStore } from "./with-key-store.ts";

interface Output {
  write(text: string): unknown;
}

export interface KeysCommandOptions {
  readonly environment: Environment;
  /** Results, and nothing else. */
  readonly stdout: Output;
  /** What is said about them to a person. */
  readonly stderr: Output;
  readonly clock: Clock;
}

const defaultTtl = "90d";

/** `trunkline keys …`. Whoever runs it is told of wrong usage by a CommanderError, of all other trouble by a StartFailure. */
export function keysCommand(options: KeysCommandOptions): Command {
  const keys = new Command("keys")
    .description("issue API keys, list them, take them back")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void options.stdout.write(text),
      writeErr: (text) => void options.stderr.write(text),
    })
    .addHelpText("after", whichStoreHelp);
  addIssue(keys, options);
  addList(keys, options);
  addRevoke(keys, options);
  return keys;
}

const whichStoreHelp = `
Keys are kept in Redis when TRUNKLINE_REDIS_URL is set (TRUNKLINE_KEY_PEPPER is needed too), otherwise in the folder
TRUNKLINE_STATE_DIR (.trunkline), also while a "trunkline up" is running on it.`;

function addIssue(keys: Command, options: KeysCommandOptions): void {
  keys
    .command("issue")
    .description("make a key and show it, once")
    .requiredOption("--name <name>", "what to call the key in lists", readBy(keyName))
    .addOption(
      new Option("--scopes <patterns>", "the models it may call, with commas between")
        .argParser(readBy(scopeList))
        .default(["*"], "*, every model"),
    )
    .addOption(
      new Option("--ttl <duration>", "how long it is valid, such as 90d, 12h, 30m or 45s")
        .argParser(readBy(duration))
        .default(duration.parse(defaultTtl), defaultTtl),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
A scope is a model id (llama3.2:3b), a name with all its variants (llama3.2), or a pattern in which * stands for
anything (qwen*). Quote patterns, or the shell takes the * for itself.

Examples:
  trunkline keys issue --name alice
  trunkline keys issue --name ci --scopes 'llama3.2,qwen*' --ttl 12h --json`,
    )
    .action(async (given: { name: string; scopes: readonly string[]; ttl: number; json?: true }) => {
      const { token, record } = await withKeyStore(options, ({ keys: store, peppers }) =>
        issueKey(
          { name: given.name, scopes: given.scopes, ttlMs: given.ttl },
          { keys: store, peppers, clock: options.clock, actor: { by: "cli" } },
        ),
      );
      const shown = {
        id: record.id,
        key: token.reveal(),
        name: record.name,
        scopes: record.scopes,
        expires_at: isoTime(record.expiresAt),
      };
      options.stdout.write(
        given.json
          ? `${JSON.stringify(shown)}\n`
          : `key      ${shown.key}\nid       ${shown.id}\nname     ${shown.name}\nscopes   ${shown.scopes.join(",")}\nexpires  ${shown.expires_at}\n`,
      );
      options.stderr.write("Keep the key now: it is not stored and cannot be shown again.\n");
    });
}

function addList(keys: Command, options: KeysCommandOptions): void {
  keys
    .command("list")
    .description("show all keys, without their secrets")
    .addOption(jsonOption())
    .addHelpText("after", "\nKeys that expired are listed for another 90 days.")
    .action(async (given: { json?: true }) => {
      const records = await withKeyStore(options, ({ keys: store }) => store.list());
      const nowMs = options.clock.wall();
      if (given.json) {
        options.stdout.write(`${JSON.stringify(records.map((record) => listed(record, nowMs)))}\n`);
      } else if (records.length === 0) {
        options.stderr.write("There are no keys yet; `trunkline keys issue --name <name>` makes one.\n");
      } else {
        options.stdout.write(
          alignedTable(
            ["id", "name", "scopes", "state", "expires"],
            records.map((record) => [
              record.id,
              record.name,
              record.scopes.join(","),
              keyState(record, nowMs),
              isoTime(record.expiresAt),
            ]),
          ),
        );
      }
    });
}

function addRevoke(keys: Command, options: KeysCommandOptions): void {
  keys
    .command("revoke")
    .description("take a key back for good")
    .argument("<id>", "the id of the key, as `trunkline keys list` shows it")
    .addOption(jsonOption())
    .addHelpText("after", "\nExample:\n  trunkline keys revoke 0aB1cD2eF3gH")
    .action(async (given: string, { json }: { json?: true }) => {
      const id = keyId.safeParse(given);
      // Not repeated in the message: it may be a whole key.
      if (!id.success) throw new StartFailure(exitCodes.usage, `The id ${id.error.issues[0]?.message}.`);
      const done = await withKeyStore(options, ({ keys: store }) =>
        changeKey(id.data, { action: "revoked" }, { keys: store, clock: options.clock, actor: { by: "cli" } }),
      );
      const outcome =
        done.outcome === "changed" ? "revoked" : done.outcome === "unchanged" ? "already_revoked" : "unknown";
      if (outcome === "unknown") {
        throw new StartFailure(exitCodes.failed, `There is no key ${id.data}: \`trunkline keys list\` shows all.`);
      }
      if (json) options.stdout.write(`${JSON.stringify({ id: id.data, outcome })}\n`);
      else options.stdout.write(`${id.data} ${outcome === "revoked" ? "is revoked" : "was revoked before"}\n`);
    });
}

const scopeList = z
  .string()
  .transform((text): readonly string[] => text.split(",").map((each) => each.trim()))
  .pipe(scopes);

function jsonOption(): Option {
  return new Option("--json", "print the result as one line of JSON");
}

function readBy<Value>(schema: z.ZodType<Value, string>): (text: string) => Value {
  return (text) => {
    const read = schema.safeParse(text);
    if (read.success) return read.data;
    throw new InvalidArgumentError(`It ${read.error.issues[0]?.message}.`);
  };
}

function listed(record: KeyRecord, nowMs: number): object {
  return {
    id: record.id,
    name: record.name,
    scopes: record.scopes,
    state: keyState(record, nowMs),
    created_at: isoTime(record.createdAt),
    expires_at: isoTime(record.expiresAt),
    revoked_at: record.revokedAt === undefined ? null : isoTime(record.revokedAt),
  };
}

function isoTime(wallMs: number): string {
  return new Date(wallMs).toISOString();
}
