import type { FastifyInstance } from "fastify";
import type { ManageProgress } from "#shared/protocol/manage-job.ts";
import type { ProgressLine } from "#shared/model/model.ts";
import type { Log } from "#shared/process/log.ts";
import type { FleetModels } from "../dispatch/fleet-models.ts";
import { adminApi } from "./admin-api.ts";
import { actorOf } from "./prove-admins.ts";
import { serveLines, serveOperation } from "./serve-operation.ts";

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
