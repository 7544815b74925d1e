import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { replicatedIn } from "#shared/keys/change-key.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import {
  type MachineStore,
  removeMachine,
  setMachineModels,
  showMachineRecord,
} from "#shared/machines/machine-record.ts";
import type { ProgressLine } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import type { FleetModels } from "../jobs/fleet-models.ts";
import { adminApi } from "./admin-api.ts";
import type { FleetView } from "./fleet-view.ts";
import { actorOf } from "./operations-access.ts";
import { serveLines, serveOperation } from "./serve-operation.ts";

interface RecordParts {
  readonly machines: MachineStore;
  readonly keys: Pick<KeyStore, "awaitReplica">;
  readonly clock: Pick<Clock, "wall">;
}

/** Mounts the routes of machine records, which say what models each machine may offer. */
export function mountMachineRecords(server: FastifyInstance, { machines, keys, clock }: RecordParts): void {
  serveOperation(server, adminApi.listMachineRecords, async () => ({
    object: "list" as const,
    data: (await machines.list()).map(showMachineRecord),
  }));
  serveOperation(server, adminApi.setMachineRecord, async ({ params, body, request }) => {
    const means = { machines, keys, clock, actor: actorOf(request) };
    const changed = await setMachineModels(params.machine, body.models ?? undefined, means);
    return { ...showMachineRecord(changed.record), ...replicatedIn(changed) };
  });
  serveOperation(server, adminApi.removeMachineRecord, async ({ params, request }) => {
    const { machine } = params;
    if ((await removeMachine(machine, { machines, clock, actor: actorOf(request) })) === undefined) {
      throw new Fault("machine_not_found", { message: `The machine '${machine}' has no record.`, param: "machine" });
    }
    return { machine, state: "removed" as const };
  });
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
  serveOperation(server, adminApi.listMachines, async () => view.machines());
  serveOperation(server, adminApi.explainRoute, ({ query }) => {
    const { model: modelId, kind, tools, vision, prompt_tokens: promptTokens } = query;
    const capability = kind === "embed" ? "embedding" : "completion";
    const imageParam = vision ? "messages" : undefined;
    return view.route({ kind, modelId, needs: { capability, tools, imageParam, promptTokens } });
  });
}
