import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { presenceSubject } from "#shared/protocol/subjects.ts";
import { PresenceReader } from "../../../services/gateway/fleet/follow-presence.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

const said = (machine: string, fields: Partial<Presence> = {}) => ({
  subject: presenceSubject(machine),
  data: encodeJson(presenceOf(machine, fields)),
});

test("a repeated presence is not read again, and any other is read", () => {
  const reader = new PresenceReader();
  const first = reader.read(said("gpu-1"));
  expect(first).toEqual(presenceOf("gpu-1"));
  expect(reader.read(said("gpu-1"))).toBe(first);
  expect(reader.read(said("gpu-1", { running: 1 }))).toEqual(presenceOf("gpu-1", { running: 1 }));
  expect(reader.read(said("gpu-1"))).toEqual(presenceOf("gpu-1"));
  expect(reader.read(said("gpu-2"))).toEqual(presenceOf("gpu-2"));
});

test("a message whose memory the connection uses again changes nothing of what was said", () => {
  const reader = new PresenceReader();
  const memory = said("gpu-1").data;
  const first = reader.read({ subject: presenceSubject("gpu-1"), data: memory });
  memory.set(encodeJson(presenceOf("gpu-1", { queueMax: 9 })));
  expect(reader.read({ subject: presenceSubject("gpu-1"), data: memory })?.queueMax).toBe(9);
  expect(first?.queueMax).toBe(8);
});

test("a machine speaks for itself only, also with what it said under its own name", () => {
  const reader = new PresenceReader();
  const { data } = said("gpu-1");
  reader.read({ subject: presenceSubject("gpu-1"), data });
  expect(reader.read({ subject: presenceSubject("gpu-2"), data })).toBeUndefined();
  expect(reader.read({ subject: presenceSubject("gpu-1"), data: Buffer.from("{}") })).toBeUndefined();
});

test("more machines than are kept are read none the less, and the one heard the longest ago is let go of", () => {
  const reader = new PresenceReader();
  const first = reader.read(said("gpu-0"));
  const second = reader.read(said("gpu-1"));
  for (let place = 2; place < 10_000; place += 1) reader.read(said(`gpu-${place}`));
  expect(reader.read(said("gpu-0"))).toBe(first);
  const last = reader.read(said("gpu-10000"));
  expect(reader.read(said("gpu-10000"))).toBe(last);
  expect(reader.read(said("gpu-0"))).toBe(first);
  const again = reader.read(said("gpu-1"));
  expect(again).toEqual(presenceOf("gpu-1"));
  expect(again).not.toBe(second);
});

test("nothing is kept of a machine that has said goodbye, not even its goodbye", () => {
  const reader = new PresenceReader();
  reader.read(said("gpu-1"));
  const goodbye = reader.read(said("gpu-1", { state: "gone" }));
  expect(goodbye?.state).toBe("gone");
  expect(reader.read(said("gpu-1", { state: "gone" }))).not.toBe(goodbye);
});
