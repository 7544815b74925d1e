import type { Command } from "commander";
import { showSiteStatus } from "#shared/admin/site-operations.ts";
import { atGateway } from "../site/operations-port.ts";
import { commandIn, type CliContext } from "../terminal/command-line.ts";
import { fromNow } from "#shared/process/quantities.ts";
import { agoText, utcTime } from "../terminal/quantity-text.ts";
import { fieldLines } from "../terminal/table-text.ts";

export function siteCommand(context: CliContext): Command {
  return commandIn("site", context)
    .option("--settings", "with the settings of the gateway that is asked, without secrets")
    .more("\nExamples:\n  trunkline site\n  trunkline site --settings\n  trunkline site --json")
    .does(atGateway, async (port, { settings: isAll }: { readonly settings?: true }) => {
      const answer = await port.ask(showSiteStatus, {});
      const nowMs = context.clock.wall();
      const timeText = (at: string) => `${utcTime(at)} (${fromNow(Date.parse(at), nowMs)})`;
      const shownSettings = isAll ? (answer.settings ?? []) : [];
      const text = fieldLines([
        ...answer.gateways.map(({ name, version, started_at: since, running }) => {
          const up = since === null ? "" : `, up for ${agoText(nowMs - Date.parse(since))}`;
          return [`gateway ${name}`, `${version}${up}, requests: ${running ?? "unknown"}`] as const;
        }),
        ["store", answer.store],
        ["NATS", answer.broker],
        ["backup", answer.backed_up_at === null ? "none is known" : timeText(answer.backed_up_at)],
        ...answer.certificates.map(
          (each) => [each.setting, `${each.names}, until ${timeText(each.expires_at)}`] as const,
        ),
        ...answer.problems.map((problem) => ["problem", problem] as const),
        ...shownSettings.map(({ name, value, secret, source }) => {
          const isSecret = secret && source !== "default";
          return [name, `${value ?? (isSecret ? "(secret)" : "-")} (${source})`] as const;
        }),
      ]);
      return { answer, text };
    });
}
