import { expect, test } from "vitest";
import { roleIn } from "../../../../services/gateway/operations/open-id.ts";

const byEmail = { claim: "email", roles: new Map([["ada@example.org", "admin"] as const]) };

test.each([
  [true, "admin"],
  [undefined, "admin"],
  [false, undefined],
  ["false", undefined],
])("an address with email_verified %j makes its person %s", (email_verified, role) => {
  expect(roleIn({ sub: "1", email: "ada@example.org", email_verified }, byEmail)).toBe(role);
});

test.each([[{}], [[{ ops: "ops" }]], [[["ops"]]], [null], [undefined]])("the claim %j gives no role", (groups) => {
  const roles = new Map([["ops", "admin"] as const, ["*", "member"] as const]);
  expect(roleIn({ groups }, { claim: "groups", roles })).toBeUndefined();
});

test("a claim that is no address needs no verified address, and the highest of its roles counts", () => {
  const roles = new Map([
    ["ops", "operator"],
    ["heads", "admin"],
  ] as const);
  expect(roleIn({ groups: ["ops", "heads"], email_verified: false }, { claim: "groups", roles })).toBe("admin");
});
