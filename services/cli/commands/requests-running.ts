import { requestOperations } from "#shared/admin/request-operations.ts";
import { runningWords } from "#shared/requests/request-words.ts";
import type { ShownRunning } from "#shared/requests/running-request.ts";
import type { CliCommand } from "../terminal/command-line.ts";
import { grouped, secondsText } from "../terminal/quantity-text.ts";
import { tableOf, type TextColumn } from "../terminal/table-text.ts";
import { atGateway } from "../site/operations-port.ts";

const { listRunning, cancelRequest } = requestOperations;

const columns: readonly TextColumn<ShownRunning>[] = [
  ["id", ({ id }) => id],
  ["state", ({ state }) => runningWords[state]],
  ["age", ({ age_ms: ms }) => secondsText(ms), "right"],
  ["tokens", ({ tokens }) => grouped.format(tokens), "right"],
  ["key", ({ key }) => key],
  ["model", ({ model }) => model ?? "-", "wrap"],
  ["machine", ({ machine }) => machine ?? "-", "wrap"],
  ["gateway", ({ gateway }) => gateway, "wrap"],
];

/** Adds the commands for requests that have not ended. */
export function addRunningCommands(requests: CliCommand): void {
  requests
    .sub("running", "list the requests that run now at all gateways, the oldest first")
    .does(atGateway, async (port) => {
      const answer = await port.ask(listRunning, {});
      const { data, silent, left_out: leftOut } = answer;
      const unasked = silent.length === 0 ? "" : `These gateways did not tell of theirs: ${silent.join(", ")}.`;
      const more = leftOut === 0 ? "" : `Not shown, since there are so many: ${leftOut} requests.`;
      return {
        answer,
        text: (widthMax) => tableOf(columns, data, { widthMax }) || "No request is running.",
        warning: [unasked, more].filter((each) => each !== "").join("\n"),
      };
    });
  requests
    .sub("cancel", "cancel a running request; its client gets 403 cancelled_by_operator and does not repeat it")
    .argument("<id>", "its id, as `trunkline requests running` lists it")
    .more("\nExample:\n  trunkline requests cancel req_4Kd0mQ3vX8sLwZ1hTn5yBc")
    .does(atGateway, async (port, id: string) => {
      const answer = await port.ask(cancelRequest, { params: { id } });
      return { answer, text: `Cancelled ${id}.` };
    });
}
