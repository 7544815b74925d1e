import { beforeEach, expect, onTestFinished, test } from "vitest";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const older = "the pepper that is to be replaced, long enough";
const newer = "the pepper that takes its place, long enough";

let stateDir: string;
beforeEach(() => void (stateDir = folderOfTest()));

async function startWith(pepper: string, also?: string): Promise<GatewayInProcess> {
  const peppers: Settings = {
    TRUNKLINE_KEY_PEPPER: pepper,
    ...(also === undefined ? {} : { TRUNKLINE_KEY_PEPPER_ALSO: also }),
  };
  const gateway = await startGatewayInProcess({ stateDir, env: peppers });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}

test("one gateway after the other, without any key being refused: it moves to the new pepper as it is used", async () => {
  const before = await startWith(older);
  const [used, unused] = [await before.issue(), await before.issue()];
  const first = await startWith(older, newer);
  const second = await startWith(newer, older);
  const at = (gateway: GatewayInProcess, key: string) => used.endpoint.at(gateway.baseUrl).withKey(key).models();
  expect(await at(first, used.endpoint.key)).toMatchObject({ status: 200 });
  expect(await at(second, used.endpoint.key)).toMatchObject({ status: 200 });
  const moved = async (): Promise<boolean> => {
    const found = await second.store.keys.find(used.record.id);
    return found.kind === "record" && found.record.pepper === second.store.peppers.current.fingerprint;
  };
  await until(moved, { what: "the key that was used to move to the new pepper" });
  expect(await at(first, used.endpoint.key)).toMatchObject({ status: 200 });

  const last = await startWith(newer);
  expect(await at(last, used.endpoint.key)).toMatchObject({ status: 200 });
  expect(await at(last, unused.endpoint.key)).toMatchObject({ status: 503, code: "auth_unavailable" });
  expect(await at(second, unused.endpoint.key)).toMatchObject({ status: 200 });
  const trail = await last.store.keys.log({ entriesMax: 10, keys: [used.record.id] });
  expect(trail.map(({ action, by }) => [action, by])).toEqual([
    ["issued", "test"],
    ["repeppered", "gateway"],
  ]);
});

test("a pepper that has nothing to do with the keys is refused at the start", async () => {
  const gateway = await startWith(older);
  await gateway.issue();
  await expect(startWith(newer)).rejects.toThrow("another pepper");
  await expect(startWith(newer, "a third pepper, which is long enough as well")).rejects.toThrow("another pepper");
});
