import { expect, test } from "vitest";
import { PatientProbes, probePatienceMs } from "../../../services/agent/runtimes/openai/openai-models.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const never = new AbortController().signal;

function probes() {
  const clock = new TurnableClock();
  const asked: PromiseWithResolvers<{ tools: boolean }>[] = [];
  const patient = new PatientProbes<{ tools: boolean }>({ clock });
  const find = () =>
    patient.find(
      "m",
      () => {
        const answer = Promise.withResolvers<{ tools: boolean }>();
        asked.push(answer);
        return answer.promise;
      },
      never,
    );
  return { clock, asked, patient, find };
}

test("a probe is asked once, and its finding kept", async () => {
  const { asked, find } = probes();
  const first = find();
  asked[0]?.resolve({ tools: true });
  expect([await first, await find(), asked.length]).toEqual([{ tools: true }, { tools: true }, 1]);
});

test("a probe of a busy server is waited for no longer than patience lasts, and not asked again meanwhile", async () => {
  const { clock, asked, find } = probes();
  const first = find();
  clock.advance(probePatienceMs);
  expect(await first).toEqual({});
  const second = find();
  asked[0]?.resolve({ tools: false });
  expect([await second, asked.length]).toEqual([{ tools: false }, 1]);
});

test("a probe that fails is asked again by the next list", async () => {
  const { asked, find } = probes();
  const first = find();
  asked[0]?.reject(new Error("busy"));
  expect(await first).toEqual({});
  const second = find();
  asked[1]?.resolve({ tools: true });
  expect(await second).toEqual({ tools: true });
});

test("a probe is forgotten with the server that answered it", async () => {
  const { asked, patient, find } = probes();
  const first = find();
  patient.forget();
  const second = find();
  asked[0]?.resolve({ tools: true });
  asked[1]?.resolve({ tools: false });
  expect([await first, await second, await find()]).toEqual([{ tools: true }, { tools: false }, { tools: false }]);
  patient.forget();
  const third = find();
  asked[2]?.resolve({ tools: true });
  expect(await third).toEqual({ tools: true });
});
