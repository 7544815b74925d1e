import { z } from "zod";
import { fleetListing } from "../fleet/shown-fleet.ts";
import { replicatedIn } from "../records/change-key.ts";
import { formatDuration } from "../process/quantities.ts";
import { duration } from "../records/shown-key.ts";
import {
  changeMachine,
  defaultCordonReason,
  type MachineChange,
  machineNameUsed,
  machineUnknown,
  removeMachine,
} from "../records/change-machine.ts";
import { joinCommand, joinTtlMsMax, makeJoin } from "../records/join-machine.ts";
import { cordonReason, machineLabels, modelPatterns } from "../records/machine-record.ts";
import { showMachineRecord, shownMachineRecord } from "../records/shown-machine.ts";
import { manageLine, modelId, modelListing } from "../protocol/model.ts";
import { isoTime } from "../process/clock.ts";
import { machineName } from "../protocol/identifiers.ts";
import { manageRequests } from "../protocol/job-bodies.ts";
import { joinLineText } from "../protocol/pairing.ts";
import { atGateway, listRecords, onStore, outcome, reads, recordsOf, replicated, type AdminSite } from "./operation.ts";

const machineRecordList = recordsOf(
  z.array(shownMachineRecord).describe("By name. A machine without a record may offer every model."),
);
const removedMachineRecord = z.strictObject({ machine: machineName, state: z.literal("removed") });

/** A join line. It is shown once, to the client that made it. */
const madeJoin = z.strictObject({
  name: machineName,
  join: z.string().describe("The join line: good once, and a secret until it was used."),
  command: z.string().describe("The command to paste on the machine, which hands the line over by standard input."),
  expires_at: z.iso.datetime(),
  replicated,
});

/** The site as machines have to know it. */
const shownSite = z.strictObject({
  site: z.string().describe("The id of the site, which machines sign."),
  public_url: z.string().nullable().describe("The URL by which machines reach the site; null when none was set."),
  certificate_sha256: z
    .string()
    .nullable()
    .describe("SHA-256 of the site's certificate in base64url; null when a public authority signed it."),
});

const readsOneMachine = {
  ...reads,
  params: z.strictObject({ machine: machineName.describe("The name of the machine.") }),
} as const;
const changesOneMachine = {
  ...readsOneMachine,
  method: "POST",
  answer: shownMachineRecord.extend({ outcome, replicated }),
  refusals: ["machine_not_found", "machine_change_refused"],
} as const;

export const machineOperations = {
  listModels: atGateway({
    ...reads,
    path: "/models",
    summary: "The models that every machine offers at this moment, or the one that is named",
    query: z.strictObject({ machine: machineName.optional().describe("Only of this machine.") }),
    answer: modelListing,
    refusals: ["machine_not_found", "agent_offline"],
  }),
  listMachines: atGateway({
    ...reads,
    path: "/fleet",
    summary: "Every machine as this gateway sees it, what it is busy with, and why it gets no work where it gets none",
    answer: fleetListing,
  }),
  listMachineRecords: onStore({
    ...reads,
    path: "/machines",
    summary: "List the records of machines: how each is paired and which models it may offer",
    answer: machineRecordList,
    async run(_, { machines, clock }) {
      const at = { nowMs: clock.wall(), lastSeen: await machines.lastSeen() };
      return listRecords(
        (unread) => machines.list(unread),
        (record) => showMachineRecord(record, at),
      );
    },
  }),
  showMachineRecord: onStore({
    ...readsOneMachine,
    path: "/machines/{machine}",
    summary: "Show the record of a machine",
    answer: shownMachineRecord,
    refusals: ["machine_not_found"],
    async run({ params: { machine } }, { machines, clock }) {
      const record = await machines.find(machine);
      if (record === undefined) throw machineUnknown(machine);
      return showMachineRecord(record, { nowMs: clock.wall(), lastSeen: await machines.lastSeen() });
    },
  }),
  showSite: onStore({
    ...reads,
    path: "/site",
    summary: "Show the site as its machines have to know it",
    answer: shownSite,
    async run(_, { machines }) {
      const { id, publicUrl, certificateSha256 } = await machines.site();
      return { site: id, public_url: publicUrl ?? null, certificate_sha256: certificateSha256 ?? null };
    },
  }),
  pairMachine: onStore({
    ...readsOneMachine,
    method: "POST",
    path: "/machines/{machine}/pair",
    summary: "Make a join line for a machine, and show it this once; a line that was not used before is good no more",
    body: z.strictObject({
      models: modelPatterns
        .optional()
        .describe("Patterns of the models it may offer; left out, those of its record, or all."),
      external: z
        .literal(true)
        .optional()
        .describe("True if its models run elsewhere, so that only routes that say so lead there."),
      ttl: duration
        .prefault(formatDuration(joinTtlMsMax))
        .refine((ms) => ms <= joinTtlMsMax, `must be at most ${formatDuration(joinTtlMsMax)}`)
        .describe("Time for which the join line is good."),
    }),
    answer: madeJoin,
    status: 201,
    refusals: ["machine_change_refused", "machine_name_used"],
    example: { models: ["llama*", "qwen*"], ttl: "10m" },
    async run({ params: { machine: name }, body: { models, external, ttl: ttlMs } }, site) {
      if (await site.isNameUsed(name)) throw machineNameUsed(name);
      const wish = { name, ttlMs, models, external, admin: site.admin?.id };
      const { line, expiresAt, changed } = await makeJoin(wish, site);
      const expires_at = isoTime(expiresAt);
      return { name, join: joinLineText(line), command: joinCommand(line), expires_at, ...replicatedIn(changed) };
    },
  }),
  renameMachine: onStore({
    ...changesOneMachine,
    path: "/machines/{machine}/rename",
    summary: "Give a paired machine another name; its jobs under the old one have 30 seconds to finish",
    body: z.strictObject({ name: machineName.describe("Its new name.") }),
    refusals: [...changesOneMachine.refusals, "machine_name_used"],
    example: { name: "loft" },
    async run({ params, body: { name } }, site) {
      if (await site.isNameUsed(name)) throw machineNameUsed(name);
      return change(params.machine, { action: "machine_renamed", name }, site);
    },
  }),
  revokeMachine: onStore({
    ...changesOneMachine,
    path: "/machines/{machine}/revoke",
    summary: "Take the key of a machine back for good, at all gateways at once; its jobs end",
    run: ({ params }, site) => change(params.machine, { action: "machine_revoked" }, site),
  }),
  cordonMachine: onStore({
    ...changesOneMachine,
    path: "/machines/{machine}/cordon",
    summary:
      "Give a machine no new jobs, and let it finish or hand over those it has; makes its record if there is none",
    body: z.strictObject({
      reason: cordonReason.default(defaultCordonReason).describe("Why, as the fleet view shows it."),
      drains: z
        .literal(true)
        .optional()
        .describe("True if answers that another machine can go on with are handed over at once."),
    }),
    example: { reason: "new fans" },
    run: ({ params, body }, site) => change(params.machine, { action: "machine_cordoned", ...body }, site),
  }),
  uncordonMachine: onStore({
    ...changesOneMachine,
    path: "/machines/{machine}/uncordon",
    summary: "Give a machine jobs again that was cordoned",
    run: ({ params }, site) => change(params.machine, { action: "machine_uncordoned" }, site),
  }),
  labelMachine: onStore({
    ...changesOneMachine,
    path: "/machines/{machine}/labels",
    summary: "Set the labels of a machine, by which routes name it; makes its record if there is none",
    body: z.strictObject({
      labels: machineLabels.describe("Its labels, by which routes name it, in place of those before."),
    }),
    example: { labels: ["fast", "mac"] },
    run: ({ params, body: { labels } }, site) => change(params.machine, { action: "machine_labelled", labels }, site),
  }),
  markMachine: onStore({
    ...changesOneMachine,
    path: "/machines/{machine}/external",
    summary: "Say whether a machine's models run elsewhere, such as at a cloud; makes its record if there is none",
    body: z.strictObject({
      external: z.boolean().describe("True if its models run elsewhere, so that only routes that say so lead there."),
    }),
    example: { external: true },
    run: ({ params, body: { external } }, site) =>
      change(params.machine, { action: "machine_external", external }, site),
  }),
  setMachineRecord: onStore({
    ...changesOneMachine,
    method: "PATCH",
    path: "/machines/{machine}",
    summary: "Set which models a machine may offer, for all gateways at once; makes its record if there is none",
    body: z.strictObject({
      models: modelPatterns.nullable().describe("Patterns of the models it may offer, as in scopes; null for all."),
    }),
    refusals: ["machine_change_refused"],
    example: { models: ["llama*", "qwen*"] },
    run: ({ params, body }, site) =>
      change(params.machine, { action: "machine_set", models: body.models ?? undefined }, site),
  }),
  removeMachineRecord: onStore({
    ...readsOneMachine,
    method: "DELETE",
    path: "/machines/{machine}",
    summary: "Remove the record of a machine that is not paired, or whose key was revoked an hour ago",
    answer: removedMachineRecord,
    refusals: ["machine_not_found", "machine_change_refused"],
    async run({ params: { machine } }, site) {
      await removeMachine(machine, site);
      return { machine, state: "removed" as const };
    },
  }),
  manageModel: atGateway({
    ...reads,
    method: "POST",
    path: "/machines/{machine}/models/{action}",
    summary:
      "Pull, remove, load or unload a model on a machine whose owner allows it. The answer is lines of JSON, which " +
      "tell how far it has come and, with the last one, how it went. A pull goes on when its answer is left; other work stops",
    params: z.strictObject({
      machine: machineName.describe("The name of the machine."),
      action: z.enum(manageRequests).describe("The action on the model; stop ends a pull."),
    }),
    body: z.strictObject({
      model: modelId.describe(
        "The model, as its runtime calls it; what is to be pulled is named as its source names it.",
      ),
    }),
    answer: manageLine,
    refusals: [
      "unsupported_value",
      "model_not_found",
      "machine_not_found",
      "upstream_error",
      "agent_disconnected",
      "agent_offline",
      "runtime_offline",
      "server_is_overloaded",
      "shutting_down",
      "upstream_timeout",
    ],
  }),
};

async function change(machine: string, wish: MachineChange, site: AdminSite) {
  const changed = await changeMachine(machine, wish, site);
  const at = { nowMs: site.clock.wall(), lastSeen: await site.machines.lastSeen() };
  return { ...showMachineRecord(changed.record, at), outcome: changed.outcome, ...replicatedIn(changed) };
}
