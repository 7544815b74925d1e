import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { presenceSubject } from "#shared/protocol/subjects.ts";
import { PresenceReader } from "../../../services/gateway/fleet/presence-reader.ts";
import { presenceOf } from "./machines-of-a-fleet.ts";

const said = (machine: string, fields: Partial<Presence> = {}) => ({
  subject: presenceSubject(machine),
  data: encodeJson(presenceOf(machine, fields)),
});

test("what a machine says again is what it said before, and anything else is read", () => {
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

test("more machines than are kept are read none the less", () => {
  const reader = new PresenceReader();
  for (let place = 0; place < 10_001; place += 1) reader.read(said(`gpu-${place}`));
  expect(reader.read(said("gpu-0"))).toEqual(presenceOf("gpu-0"));
  expect(reader.read(said("gpu-10000"))).toEqual(presenceOf("gpu-10000"));
});
