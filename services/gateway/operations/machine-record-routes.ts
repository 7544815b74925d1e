import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { replicatedIn } from "#shared/keys/change-key.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import { removeMachine, setMachineModels } from "#shared/machines/change-machine.ts";
import { showMachineRecord, type MachineStore } from "#shared/machines/machine-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import { adminApi } from "./admin-api.ts";
import { actorOf } from "./prove-admins.ts";
import { serveOperation } from "./serve-operation.ts";

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
