import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { limits } from "#shared/protocol/limits.ts";
import { rendererOf } from "../../harness/read-requests.ts";
import { renderResponse } from "../../../services/gateway/apis/responses/render-response.ts";
import { end } from "./follower-on-a-wire.ts";
import { broken, finish, hello, placing, type Wish } from "./placed-requests.ts";
import { readResponse } from "./response-requests.ts";

test("a job that no machine takes goes to one that came while the others turned out to be away", async () => {
  const { run, next, come, leave, pass, settle, timing } = await placing({ present: ["gpu-1"] });
  leave("gpu-1");
  const outcome = run();
  await settle();
  await come("gpu-2");
  await pass(timing.retryAfterNobodyMs);
  const { machine, job } = await next();
  machine.say(job, "data", finish, 1);
  machine.say(job, "end", end, 2);
  await settle();
  expect([machine.name, await outcome]).toEqual(["gpu-2", "end"]);
});

test("a job that fails before its first word is given whole to a machine that has not had it, twice at most, and its client hears of nothing else", async () => {
  const { run, next, fail, heard, settle } = await placing();
  const outcome = run("the request");
  const first = await fail(broken);
  const second = await fail({ code: "runtime_offline", message: "It does not answer." });
  const { machine, job, body } = await next();
  expect(new Set([first, second, machine.name]).size).toBe(3);
  expect(body).toBe("the request");
  machine.say(job, "data", hello + finish, 1);
  machine.say(job, "end", end, 2);
  await settle();
  expect([await outcome, heard]).toEqual(["end", ["Hello"]]);
});

test.each([
  ["though two more are there", undefined],
  ["though no other is there", ["gpu-1", "gpu-2"]],
])(
  "a job that fails before its first word with two runtimes that died under it is given to no third %s, and not when it comes again",
  async (_, present) => {
    const { run, fail, placed } = await placing({ present });
    const outcome = run("deadly");
    await fail({ ...broken, runtimeDied: true });
    await fail({ ...broken, runtimeDied: true });
    expect([await outcome, placed()]).toEqual(["poison_request", 2]);
    expect([await run("deadly"), placed()]).toEqual(["poison_request", 2]);
  },
);

test("a machine that answers a request has it forgotten that another one died under it", async () => {
  const { run, next, fail, placed, settle } = await placing({ present: ["gpu-1", "gpu-2"] });
  const [one, other] = [{ machines: ["gpu-1"] }, { machines: ["gpu-2"] }];
  const dying = { ...broken, runtimeDied: true };
  const failing = async (wish: object): Promise<string> => {
    const outcome = run("deadly", wish);
    await fail(dying);
    return outcome;
  };
  expect(await failing(one)).toBe("upstream_error");
  const outcome = run("deadly", other);
  const { machine, job } = await next();
  machine.say(job, "data", hello + finish, 1);
  machine.say(job, "end", end, 2);
  await settle();
  expect(await outcome).toBe("end");
  expect([await failing(other), await failing(other), placed()]).toEqual(["upstream_error", "upstream_error", 4]);
});

test.each([
  ["that it lost while the gateway had just come back is not held against it", "cancelled", false],
  ["that its runtime failed is", "upstream_error", true],
])("a job of a machine %s", async (_, code, isAvoided) => {
  const { run, fail, breakers, broker } = await placing({ present: ["gpu-1"] });
  broker.cut();
  broker.restore();
  for (let failures = 0; failures < 5; failures += 1) {
    const outcome = run(String(failures));
    await fail({ code, message: "It is over." });
    await outcome;
  }
  expect(breakers.avoids("gpu-1", "llama3", 0) !== undefined).toBe(isAvoided);
});

const { terms } = readResponse().form;
const about = { id: "resp_1", createdSeconds: 1 };
const asResponse = (streamed: boolean): NonNullable<Wish["render"]> => {
  const rendering = renderResponse(terms, { streamed });
  return (model) => rendererOf(rendering, { ...about, model });
};

test("a job whose answer is rendered here goes to another machine for as long as nothing of the answer is out, whatever was told of it", async () => {
  const { run, next, heard, settle } = await placing();
  const outcome = run("the body", { whole: true, render: asResponse(false) });
  const first = await next();
  first.machine.say(first.job, "data", hello, 1);
  first.machine.say(first.job, "fault", broken, 2);
  await settle();
  const second = await next();
  expect([second.machine === first.machine, second.body]).toEqual([false, "the body"]);
  second.machine.say(second.job, "data", hello + finish, 1);
  second.machine.say(second.job, "end", end, 2);
  expect(await outcome).toBe("end");
  expect(heard.map((text) => (JSON.parse(text) as { status: string }).status)).toEqual(["completed"]);
  expect(second.head.credit).toBe(limits.wholeCreditBytes);
});

test("a job whose answer is rendered here stays where it is once its client has something of it", async () => {
  const { run, next, heard, placed } = await placing();
  const outcome = run("the body", { render: asResponse(true) });
  const { machine, job } = await next();
  machine.say(job, "data", hello, 1);
  machine.say(job, "fault", broken, 2);
  expect(await outcome).toBe("upstream_error");
  expect([heard.length, placed()]).toEqual([1, 1]);
});

test("a job whose answer is rendered here is not far ahead of its client, since what is made of it is long", async () => {
  const { run, next, leaving } = await placing();
  const writer = { onData: () => undefined, unreadBytes: () => 0 };
  const outcome = run("the body", { render: asResponse(true), writer });
  const { head } = await next();
  expect(head.credit).toBe(limits.streamCreditBytes);
  leaving.abort(new Fault("client_closed", { message: "The client left." }));
  await outcome;
});
