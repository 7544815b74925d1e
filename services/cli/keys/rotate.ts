import { Option, type Command } from "commander";
import { durationOrNone, formatDuration } from "#shared/keys/duration.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { keyKinds, type KeyId, type KeyKind } from "#shared/keys/key-token.ts";
import { defaultGraceMs, rotateKey } from "#shared/keys/rotate-key.ts";
import { jsonOption, type GivenJson } from "../json-option.ts";
import { readBy } from "../read-by.ts";
import type { Surroundings } from "../surroundings.ts";
import { utcTime } from "../text/utc-time.ts";
import { withKeyStore } from "../with-key-store.ts";
import { actor } from "./actor.ts";
import { changedRecord, noSuchKey, replicationLine } from "./changed-record.ts";
import { keyArgument } from "./given-key-id.ts";
import { tellSecret } from "./tell-secret.ts";

export function addRotate(keys: Command, surroundings: Surroundings): void {
  const { stderr } = surroundings;
  keys
    .command("rotate")
    .description("give a key another secret and show it, once")
    .addArgument(keyArgument())
    .addOption(
      new Option("--grace <duration>", "how long the old secret stays good; 0s: not at all")
        .argParser(readBy(durationOrNone))
        .default(defaultGraceMs, formatDuration(defaultGraceMs)),
    )
    .addOption(
      new Option("--kind <kind>", "the kind that the key must have")
        .choices(keyKinds)
        .default("model" satisfies KeyKind),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
The id, the terms, the expiry and the usage of the key stay. If a secret has leaked, give no grace: requests
with any old one are refused at once.

Examples:
  trunkline keys rotate 0aB1cD2eF3gH
  trunkline keys rotate 0aB1cD2eF3gH --grace 0s
  trunkline keys rotate 0aB1cD2eF3gH --kind admin`,
    )
    .action((id: KeyId, { grace, kind, json }: { readonly grace: number; readonly kind: KeyKind } & GivenJson) =>
      withKeyStore(surroundings, { json }, async ({ keys: store, peppers, clock, place }) => {
        const means = { keys: store, peppers, clock, actor: actor() };
        const { changed, token } = await rotateKey({ id, graceMs: grace, kind }, means);
        const record = changedRecord(changed, { id, place });
        if (record === undefined || token === undefined) throw noSuchKey(id, place);
        tellSecret({ token, record }, { json }, { ...surroundings, clock });
        stderr.write(replicationLine(changed));
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
