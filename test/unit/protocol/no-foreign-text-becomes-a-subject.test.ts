import * as fc from "fast-check";
import { expect, test } from "vitest";
import { newEpoch, machineName, newToken } from "#shared/protocol/identifiers.ts";
import { presence } from "#shared/protocol/presence.ts";
import {
  beatsSubject,
  echoSubject,
  machineChannels,
  machinePattern,
  machineSubject,
  parseMachineSubject,
  parsePlacedSubject,
  parseReplySubject,
  placedPattern,
  placedSubject,
  presencePattern,
  presenceSubject,
  replyPattern,
  replySubject,
} from "#shared/protocol/subjects.ts";
import { subjectMatches } from "#shared/broker/broker.ts";

const machine = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const token = fc.constant(null).map(() => newToken());
const epoch = fc.nat().map((wallMs) => newEpoch(wallMs));

/** Text that somebody would like to see in a subject, and text that nearly is one. */
const foreign = fc.oneof(
  fc.string(),
  fc.constantFrom("", "*", ">", "a.b", "a b", "gpu\r\nPUB x 0", "GPU", "-gpu", "gpu\n", "ünïcode", "a".repeat(64)),
);

test("a subject of a reply is read as it was built, and lies under its gateway's pattern only", () => {
  fc.assert(
    fc.property(token, machine, token, (gateway, name, job) => {
      const subject = replySubject({ gateway, machine: name, job });
      expect(parseReplySubject(subject)).toEqual({ gateway, machine: name, job });
      expect(subjectMatches(replyPattern(gateway), subject)).toBe(true);
      expect(subjectMatches(replyPattern(newToken()), subject)).toBe(false);
      expect(parseReplySubject(beatsSubject({ gateway, machine: name }))?.job).toBe("beats");
    }),
  );
});

test("a subject of a machine lies under the pattern of this boot only, and tells its channel", () => {
  fc.assert(
    fc.property(machine, epoch, token, (name, boot, gateway) => {
      const self = { machine: name, epoch: boot };
      for (const channel of machineChannels) {
        const subject = machineSubject(self, channel);
        expect(parseMachineSubject(subject)).toEqual({ channel });
        expect(subjectMatches(machinePattern(self), subject)).toBe(true);
        expect(subjectMatches(machinePattern({ ...self, epoch: newEpoch(0) }), subject)).toBe(false);
      }
      expect(parseMachineSubject(echoSubject(self, gateway))).toEqual({ channel: "echo", gateway });
      expect(subjectMatches(machinePattern(self), echoSubject(self, gateway))).toBe(true);
      expect(subjectMatches(presencePattern, presenceSubject(name))).toBe(true);
    }),
  );
});

test("a subject of placements names its gateway, and no other text does", () => {
  fc.assert(
    fc.property(token, foreign, (gateway, text) => {
      expect(parsePlacedSubject(placedSubject(gateway))).toBe(gateway);
      expect(subjectMatches(placedPattern, placedSubject(gateway))).toBe(true);
      expect(parsePlacedSubject(placedSubject(text))).toBeUndefined();
      expect(parsePlacedSubject(placedSubject(`${gateway}${text || "x"}`))).toBeUndefined();
    }),
  );
});

test("a subject that came from elsewhere is taken apart only when it is exactly what we would build", () => {
  const near = fc.tuple(foreign, foreign, foreign).map(([a, b, c]) => `tl1.reply.${a}.${b}.${c}`);
  const nearer = fc
    .tuple(token, fc.oneof(machine, foreign), fc.oneof(token, foreign))
    .map(([a, b, c]) => `tl1.reply.${a}.${b}.${c}`);
  fc.assert(
    fc.property(fc.oneof(foreign, near, nearer), (subject) => {
      const parsed = parseReplySubject(subject);
      if (parsed === undefined) return;
      expect(replySubject(parsed)).toBe(subject);
      expect(machineName.safeParse(parsed.machine).success).toBe(true);
      expect(`${parsed.gateway}${parsed.job}`).toMatch(/^[0-9A-Za-z]+$/);
    }),
    { numRuns: 1_000 },
  );
});

test.each(["", "stop", "echo", "*", "JOB"])(
  "a subject of a machine that ends in %j is for nothing that we know",
  (end) => {
    expect(parseMachineSubject(`tl1.machine.gpu.${newEpoch(0)}.${end}`)).toEqual({ channel: "unknown" });
  },
);

test("a subject cannot be brought about by a presence: a name or an epoch that is no token is refused", () => {
  const told = {
    machine: "gpu-1",
    epoch: newEpoch(0),
    state: "ready",
    runtime: null,
    slots: 1,
    running: 0,
    queued: 0,
    queueMax: 1,
    catalogueDigest: "",
    wire: 2,
    scale: 1,
  };
  expect(presence.safeParse(told).success).toBe(true);
  fc.assert(
    fc.property(foreign, (text) => {
      const isName = /^[a-z0-9][a-z0-9-]{0,62}$/.test(text) && !text.includes("\n");
      expect(presence.safeParse({ ...told, machine: text }).success).toBe(isName);
      expect(presence.safeParse({ ...told, epoch: `${told.epoch}${text}` }).success).toBe(text === "");
    }),
  );
});
