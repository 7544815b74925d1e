import { crc32 } from "node:zlib";
import { expect, test } from "vitest";
import { keyKinds, mintKeyToken, parseKeyToken, type KeyKind } from "#shared/keys/key-token.ts";
import { pepperText } from "#shared/keys/pepper.ts";

const forms: Record<KeyKind, RegExp> = {
  model: /^trunkline_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/,
  admin: /^trunkline_admin_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/,
  viewer: /^trunkline_viewer_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}$/,
};

test.each(keyKinds)("a %s key has the form of its kind alone, and is read as one", (kind) => {
  const token = mintKeyToken(kind);
  for (const each of keyKinds) expect(forms[each].test(token.reveal())).toBe(each === kind);
  expect(token.kind).toBe(kind);
  expect(parseKeyToken(token.reveal())).toMatchObject({ outcome: "parsed", token: { kind, id: token.id } });
});

test.each(keyKinds)("a %s key whose prefix is exchanged for the other kind's is no key", (kind) => {
  const text = mintKeyToken(kind).reveal();
  const rest = text.replace(/^trunkline_(admin_|viewer_)?/, "");
  const exchanged = kind === "model" ? `trunkline_admin_${rest}` : `trunkline_${rest}`;
  expect(parseKeyToken(exchanged).outcome).toBe("checksum_wrong");
});

test("with its checksum made right, an exchanged prefix makes another key, of which the store knows nothing", () => {
  const pepper = pepperText.parse("a pepper that is long enough to be one");
  const model = mintKeyToken("model");
  const unsigned = model.reveal().slice(0, -6).replace("trunkline_", "trunkline_admin_");
  const parsed = parseKeyToken(unsigned + base62Checksum(unsigned));
  if (parsed.outcome !== "parsed") throw new Error(parsed.outcome);
  expect(parsed.token).toMatchObject({ kind: "admin", id: model.id });
  expect(parsed.token.digest(pepper)).not.toBe(model.digest(pepper));
});

test("a new secret for a key is of its id and kind", () => {
  const first = mintKeyToken("admin");
  const second = mintKeyToken("admin", first.id);
  expect(second).toMatchObject({ id: first.id, kind: "admin" });
  expect(second.reveal()).not.toBe(first.reveal());
});

function base62Checksum(text: string): string {
  const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const digits = Array.from({ length: 6 }, (_, place) => Math.floor(crc32(text) / 62 ** (5 - place)) % 62);
  return digits.map((digit) => alphabet.charAt(digit)).join("");
}
