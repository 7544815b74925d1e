import type { FastifyInstance, FastifyRequest } from "fastify";
import { replicatedIn } from "#shared/keys/change-key.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import {
  changeMachine,
  type MachineChange,
  machineNameUsed,
  machineUnknown,
  removeMachine,
} from "#shared/machines/change-machine.ts";
import { joinCommand, makeJoin } from "#shared/machines/join-machine.ts";
import type { MachineStore } from "#shared/machines/machine-record.ts";
import { showMachineRecord, type ShownMachineRecord } from "#shared/machines/shown-machine.ts";
import type { ProgressLine } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import { joinLineText } from "#shared/protocol/pairing.ts";
import type { FleetModels } from "../jobs/fleet-models.ts";
import { adminApi } from "./admin-api.ts";
import type { FleetView } from "./fleet-view.ts";
import { actorOf, askerOf } from "./operations-access.ts";
import { serveLines, serveOperation } from "./serve-operation.ts";

interface RecordParts {
  readonly machines: MachineStore;
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
}

/** Mounts the routes that show and remove machine records, and permit models. */
export function mountMachineRecords(server: FastifyInstance, parts: RecordParts): void {
  const { machines, clock } = parts;
  serveOperation(server, adminApi.listMachineRecords, async () => {
    const at = { nowMs: clock.wall(), lastSeen: await machines.lastSeen() };
    return { object: "list" as const, data: (await machines.list()).map((record) => showMachineRecord(record, at)) };
  });
  serveOperation(server, adminApi.showMachineRecord, async ({ params: { machine } }) => {
    const record = await machines.find(machine);
    if (record === undefined) throw machineUnknown(machine);
    return showMachineRecord(record, { nowMs: clock.wall(), lastSeen: await machines.lastSeen() });
  });
  serveOperation(server, adminApi.setMachineRecord, ({ params: { machine }, body, request }) =>
    change(machine, { action: "machine_set", models: body.models ?? undefined }, { request, ...parts }),
  );
  serveOperation(server, adminApi.removeMachineRecord, async ({ params: { machine }, request }) => {
    await removeMachine(machine, { machines, clock, actor: actorOf(request) });
    return { machine, state: "removed" as const };
  });
  serveOperation(server, adminApi.showSite, async () => {
    const { id, publicUrl, certificateSha256 } = await machines.site();
    return { site: id, public_url: publicUrl ?? null, certificate_sha256: certificateSha256 ?? null };
  });
}

interface ChangeParts extends RecordParts {
  /** Returns true while an agent that was not paired has this name. */
  readonly isNameUsed: (machine: string) => boolean;
}

/** Mounts the routes that pair, rename, revoke and cordon machines. */
export function mountMachineChanges(server: FastifyInstance, parts: ChangeParts): void {
  const { isNameUsed, ...stores } = parts;
  serveOperation(server, adminApi.pairMachine, async ({ params: { machine: name }, body, request }) => {
    if (isNameUsed(name)) throw machineNameUsed(name);
    const { models, elsewhere, ttl: ttlMs } = body;
    const { actor, admin } = askerOf(request);
    const wish = { name, ttlMs, models, elsewhere, admin: admin.id };
    const { line, expiresAt } = await makeJoin(wish, { ...stores, actor });
    const expires_at = new Date(expiresAt).toISOString();
    return { name, join: joinLineText(line), command: joinCommand(line), expires_at };
  });
  serveOperation(server, adminApi.renameMachine, ({ params: { machine }, body: { name }, request }) => {
    if (isNameUsed(name)) throw machineNameUsed(name);
    return change(machine, { action: "machine_renamed", name }, { request, ...stores });
  });
  serveOperation(server, adminApi.revokeMachine, ({ params: { machine }, request }) =>
    change(machine, { action: "machine_revoked" }, { request, ...stores }),
  );
  serveOperation(server, adminApi.cordonMachine, ({ params: { machine }, body: { reason }, request }) =>
    change(machine, { action: "machine_cordoned", reason }, { request, ...stores }),
  );
  serveOperation(server, adminApi.labelMachine, ({ params: { machine }, body: { labels }, request }) =>
    change(machine, { action: "machine_labelled", labels }, { request, ...stores }),
  );
  serveOperation(server, adminApi.markMachine, ({ params: { machine }, body: { elsewhere }, request }) =>
    change(machine, { action: "machine_elsewhere", elsewhere }, { request, ...stores }),
  );
  serveOperation(server, adminApi.uncordonMachine, ({ params: { machine }, request }) =>
    change(machine, { action: "machine_uncordoned" }, { request, ...stores }),
  );
}

async function change(
  machine: string,
  wish: MachineChange,
  { request, machines, keys, clock }: RecordParts & { readonly request: FastifyRequest },
): Promise<ShownMachineRecord & { readonly replicated?: boolean }> {
  const changed = await changeMachine(machine, wish, { machines, keys, clock, actor: actorOf(request) });
  const at = { nowMs: clock.wall(), lastSeen: await machines.lastSeen() };
  return { ...showMachineRecord(changed.record, at), ...replicatedIn(changed) };
}

interface ModelParts {
  readonly fleet: Pick<FleetModels, "list" | "manage">;
  readonly log: Log;
}

/** Mounts the routes that list the machines' models and run model actions. */
export function mountModels(server: FastifyInstance, { fleet, log }: ModelParts): void {
  serveOperation(server, adminApi.listModels, ({ query }) => fleet.list(query.machine));
  serveLines(server, adminApi.manageModel, {
    log,
    async work({ params, body, request }, { tell, signal }) {
      const { machine, action } = params;
      const { model } = body;
      const { by } = actorOf(request);
      log.info({ by, request: request.id, machine, action, model }, "a machine is asked to manage a model");
      await fleet.manage(machine, { action, model, signal, onProgress: (progress) => tell(lineOf(progress)) });
    },
  });
}

function lineOf({ status, completedBytes, totalBytes }: ManageProgress): ProgressLine {
  return { status, completed_bytes: completedBytes ?? null, total_bytes: totalBytes ?? null };
}

/**
 * Mounts the routes that list the machines as this gateway sees them and explain where a request for a model would go.
 */
export function mountFleet(
  server: FastifyInstance,
  { view }: { readonly view: Pick<FleetView, "machines" | "route"> },
): void {
  serveOperation(server, adminApi.listMachines, () => view.machines());
  serveOperation(server, adminApi.explainRoute, ({ query }) => {
    const { model: modelId, kind, tools, vision, prompt_tokens: promptTokens } = query;
    const capability = kind === "embed" ? "embedding" : "completion";
    const imageParam = vision ? "messages" : undefined;
    return view.route({ kind, modelId, needs: { capability, tools, imageParam, promptTokens } });
  });
}
