import { Option, type Command } from "commander";
import { duration, formatDuration } from "#shared/keys/duration.ts";
import { defaultTtlMs, issueKey, newKey } from "#shared/keys/issue-key.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import { readBy } from "../read-by.ts";
import type { Surroundings } from "../surroundings.ts";
import { withKeyStore } from "../with-key-store.ts";
import { actor } from "./actor.ts";
import { tellSecret } from "./tell-secret.ts";
import {
  givenTerms,
  limitingOptions,
  limitsHelp,
  nameOption,
  scopesHelp,
  scopesOption,
  type GivenTerms,
} from "./terms.ts";

interface Given extends GivenTerms, GivenJson {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly ttl: number;
  readonly admin?: true;
  readonly viewer?: true;
}

export function addIssue(keys: Command, surroundings: Surroundings): void {
  const limiting = limitingOptions();
  const aboutModels = ["scopes", ...limiting.map((option) => option.attributeName())];
  const issue: Command = keys
    .command("issue")
    .description("make a key and show it, once")
    .addOption(nameOption().makeOptionMandatory())
    .addOption(scopesOption().default(["*"], "*, every model"))
    .addOption(
      new Option("--ttl <duration>", "how long it is valid, such as 90d, 12h, 30m or 45s")
        .argParser(readBy(duration))
        .default(defaultTtlMs, formatDuration(defaultTtlMs)),
    );
  for (const option of limiting) issue.addOption(option);
  issue
    .addOption(
      new Option("--admin", "make a key for the admin API, which manages keys and calls no models").conflicts(
        aboutModels,
      ),
    )
    .addOption(
      new Option("--viewer", "make a key that only reads the admin API, for consoles and monitoring").conflicts([
        "admin",
        ...aboutModels,
      ]),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `${scopesHelp}
${limitsHelp}

Examples:
  trunkline keys issue --name alice
  trunkline keys issue --name ci --scopes 'llama3.2,qwen*' --machines attic --ttl 12h --json
  trunkline keys issue --name app --rpm 60 --tpm 100k --concurrency 4 --budget 2M/month
  trunkline keys issue --name console --admin --ttl 30d
  trunkline keys issue --name monitoring --viewer`,
    )
    .action(async (given: Given) => {
      const { name, scopes, ttl: ttlMs, json } = given;
      const { machines, limits } = givenTerms(given);
      const wish = newKey.safeParse({
        kind: given.admin ? "admin" : given.viewer ? "viewer" : "model",
        name,
        scopes,
        ttlMs,
        machines: machines ?? undefined,
        limits: Object.fromEntries(Object.entries(limits ?? {}).filter(([, limit]) => limit !== null)),
      });
      if (!wish.success) issue.error(`error: the --ttl ${wish.error.issues[0]?.message}.`);
      await withKeyStore(surroundings, { json }, async ({ keys: store, peppers, clock }) => {
        const issued = await issueKey(wish.data, { keys: store, peppers, clock, actor: actor() });
        tellSecret(issued, { json }, { ...surroundings, clock });
      });
    });
}
