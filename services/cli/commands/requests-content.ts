import { contentOperations } from "#shared/admin/content-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import type { CapturedContent } from "#shared/records/captured-content.ts";
import { partsOf } from "#shared/requests/content-parts.ts";
import type { CliCommand } from "../terminal/command-line.ts";
import { onStore } from "../site/with-key-store.ts";

/** Formats the captured content of a request. No text in it controls the terminal. */
export function contentText(content: CapturedContent): string {
  const texts = partsOf(content).map(([title, text]) => {
    const lines = text.replaceAll("\t", "  ").split("\n");
    return `${onOneLine(title)}\n${lines.map((line) => `  ${onOneLine(line)}`).join("\n")}\n`;
  });
  return [`${content.id} of the key ${content.key}\n`, ...texts].join("\n");
}

export function addForgetCommand(requests: CliCommand): void {
  requests
    .sub("forget", "remove the captured content of a request for good; its record stays")
    .argument("<id>", "its id, which its client got as x-request-id")
    .more("\nExample:\n  trunkline requests forget req_4Kd0mQ3vX8sLwZ1hTn5yBc")
    .does(onStore, async (store, id: string) => {
      const answer = await runOn(store, contentOperations.forgetContent, { params: { id } });
      return { answer, text: `The content of ${id} is removed.` };
    });
}
