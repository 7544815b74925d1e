import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { Catalogues } from "../../../services/gateway/fleet/catalogues.ts";
import type { KnownModels } from "#shared/store/known-models.ts";
import { Breakers } from "../../../services/gateway/routing/breakers.ts";
import { JobPlacements } from "../../../services/gateway/routing/job-placements.ts";
import { RefusedEfforts } from "../../../services/gateway/requests/refused-efforts.ts";
import { JobRunner } from "../../../services/gateway/requests/run-job.ts";
import { requestOfATest } from "./request-of-a-test.ts";
import { MachineRanking } from "../../../services/gateway/routing/rank-machines.ts";
import { createLog } from "#shared/process/log.ts";
import { faultHeaders } from "../../../services/gateway/http/answer-faults.ts";
import { gatewayOnBroker } from "./gateway-on-a-broker.ts";

test("a client that asks for a known model just after the gateway has its broker back is told so and to come back in a second, later of the machine and in five", async () => {
  const { open: jobs, roster, broker, clock, timing, pass } = gatewayOnBroker();
  const knownModels: KnownModels = { remember: async () => undefined, knows: async () => "known" };
  const log = createLog({ level: "silent", name: "test" });
  const ask = async () => ({ outcome: "unknown" }) as never;
  const catalogues = new Catalogues({ ask, knownModels, clock, log });
  const breakers = new Breakers(timing);
  const placements = new JobPlacements({ roster, catalogues, breakers, clock, random: Math.random });
  const ranking = new MachineRanking({ roster, catalogues, knownModels, placements, waitMs: 0, timing, clock });
  const refusedEfforts = new RefusedEfforts(clock);
  const runner = new JobRunner({ ranking, breakers, placements, refusedEfforts, jobs, timing, clock, log });
  const request = requestOfATest(clock);
  const { signal } = new AbortController();
  const told = async (): Promise<[string, string | undefined]> => {
    const asked = runner.assertTaker(request.work, request, signal);
    const fault = Fault.from(await asked.then(() => undefined).catch((thrown: unknown) => thrown));
    return [fault.code, faultHeaders(fault)["retry-after"]];
  };
  broker.cut();
  broker.restore();
  expect(await told()).toEqual(["backend_unavailable", "1"]);
  await pass(timing.offlineAfterMs);
  expect(await told()).toEqual(["agent_offline", "5"]);
});
