import { expect, test } from "vitest";
import { epoch, machineName, machineNameOf, newEpoch, newToken, tokenText } from "#shared/protocol/identifiers.ts";
import * as fc from "fast-check";
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

test("a token is 22 letters and digits, all of them used, and comes only once", () => {
  const tokens = Array.from({ length: 20_000 }, () => newToken());
  for (const token of tokens) expect(token).toMatch(tokenText);
  expect(new Set(tokens).size).toBe(tokens.length);
  expect(new Set(tokens.join("")).size).toBe(62);
});

test("a token behind a word is as good as one alone, and the word is whole", () => {
  const words = ["req_", "chatcmpl-", "", "embd-"];
  const tokens = Array.from({ length: 20_000 }, (_, at) => {
    const word = words[at % words.length] ?? "";
    const named = newToken(word);
    expect(named.slice(0, word.length)).toBe(word);
    expect(named.slice(word.length)).toMatch(tokenText);
    return named.slice(word.length);
  });
  expect(new Set(tokens).size).toBe(tokens.length);
});

test("every character of a token is as likely as any other", () => {
  const counts = new Map<string, number>();
  const characters = Array.from({ length: 20_000 }, () => newToken()).join("");
  for (const character of characters) counts.set(character, (counts.get(character) ?? 0) + 1);
  // About 7 100 of each; a difference of 12 % is ten standard deviations, and a modulo bias would be 25 %.
  const mean = characters.length / 62;
  for (const count of counts.values()) expect(Math.abs(count - mean) / mean).toBeLessThan(0.12);
});

test.each(["", "a".repeat(21), "a".repeat(23), `${"a".repeat(21)}.`, `${"a".repeat(22)}\n`, `${"a".repeat(21)}é`])(
  "%j is no token",
  (text) => {
    expect(tokenText.test(text)).toBe(false);
  },
);

/** From 1970 to the year 2286, when epochs get a digit more. */
const wallMs = fc.oneof(fc.nat(), fc.integer({ min: 0, max: 9_999_999_999_998 }));

test("an epoch sorts as text by the time of its boot", () => {
  fc.assert(
    fc.property(wallMs, wallMs, (earlier, later) => {
      fc.pre(earlier < later);
      expect(newEpoch(earlier) < newEpoch(later)).toBe(true);
    }),
  );
});

test("an epoch is newer than all that were heard, also when the clock of this host was set back", () => {
  fc.assert(
    fc.property(wallMs, fc.array(wallMs, { maxLength: 5 }), (now, boots) => {
      const heard = boots.map((boot) => newEpoch(boot));
      const own = newEpoch(now, heard);
      for (const other of heard) expect(own > other).toBe(true);
      expect(own >= newEpoch(now).slice(0, 13)).toBe(true);
      expect(epoch.safeParse(own).success).toBe(true);
    }),
  );
});

test("an epoch takes any clock reading, also one with a fraction", () => {
  expect(newEpoch(1_767_225_600_000.75)).toMatch(/^1767225600000-[0-9a-f]{8}$/);
});

test("an epoch tells two boots of the same millisecond apart", () => {
  const boots = Array.from({ length: 100 }, () => newEpoch(1_767_225_600_000));
  expect(new Set(boots).size).toBe(100);
});

test("whatever a host calls itself, its machine has a valid name", () => {
  const hostname = fc.oneof(
    fc.string({ unit: "binary", maxLength: 100 }),
    fc.domain(),
    fc.stringMatching(/^[-._A-Z0-9]{0,90}$/),
  );
  fc.assert(
    fc.property(hostname, (name) => {
      expect(machineName.safeParse(machineNameOf(name)).success).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test("a valid name stays as it is", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/), (name) => {
      expect(machineNameOf(name)).toBe(name);
    }),
  );
});

test.each([
  ["GPU-1", "gpu-1"],
  ["gpu1.example.org", "gpu1"],
  ["Anna's MacBook Pro", "anna-s-macbook-pro"],
  ["--x", "x"],
  ["", "machine"],
  ["...", "machine"],
  ["東京", "machine"],
  ["a".repeat(70), "a".repeat(63)],
])("%j becomes %j", (hostname, name) => {
  expect(machineNameOf(hostname)).toBe(name);
});

const machine = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const token = fc.constant(null).map(() => newToken());
const boots = fc.nat().map((ms) => newEpoch(ms));

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
    fc.property(machine, boots, token, (name, boot, gateway) => {
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

test("a subject cannot be brought about by a presence: a name or an boots that is no token is refused", () => {
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
