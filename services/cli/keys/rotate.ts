import { Option, type Command } from "commander";
import { durationOrNone, formatDuration } from "#shared/keys/duration.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { defaultGraceMs, rotateKey } from "#shared/keys/rotate-key.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import { readBy } from "../read-by.ts";
import type { Surroundings } from "../surroundings.ts";
import { utcTime } from "../text/utc-time.ts";
import { withKeyStore } from "../with-key-store.ts";
import { actor } from "./actor.ts";
import { changedRecord, noSuchKey } from "./changed-record.ts";
import { keyArgument } from "./given-key-id.ts";
import { tellSecret } from "./tell-secret.ts";

export function addRotate(keys: Command, surroundings: Surroundings): void {
  const { stderr, clock } = surroundings;
  keys
    .command("rotate")
    .description("give a key another secret and show it, once")
    .addArgument(keyArgument())
    .addOption(
      new Option("--grace <duration>", "how long the old secret stays good; 0s: not at all")
        .argParser(readBy(durationOrNone))
        .default(defaultGraceMs, formatDuration(defaultGraceMs)),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
The id, the terms, the expiry and the usage of the key stay. If a secret has leaked, give no grace: requests
with any old one are refused at once.

Examples:
  trunkline keys rotate 0aB1cD2eF3gH
  trunkline keys rotate 0aB1cD2eF3gH --grace 0s`,
    )
    .action((id: KeyId, { grace, json }: { readonly grace: number } & GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ keys: store, peppers, place }) => {
        const means = { keys: store, peppers, clock, actor: actor() };
        const { changed, token } = await rotateKey({ id, graceMs: grace }, means);
        const record = changedRecord(changed, { id, place });
        if (record === undefined || token === undefined) throw noSuchKey(id, place);
        tellSecret({ token, record }, { json }, surroundings);
        if (!json) stderr.write(oldSecretLine(record, clock.wall()));
      }),
    );
}

function oldSecretLine({ replaced: [old] = [], expiresAt }: KeyRecord, nowMs: number): string {
  const until = Math.min(old?.validUntil ?? 0, expiresAt);
  return until <= nowMs
    ? "The old secret is not good any more.\n"
    : `The old secret stays good until ${utcTime(until)}.\n`;
}
