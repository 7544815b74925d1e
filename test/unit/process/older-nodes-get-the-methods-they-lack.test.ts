import { expect, onTestFinished, test } from "vitest";
import { supplyOlderNodes } from "#shared/process/older-nodes.ts";

const name = "getOrInsertComputed";

test("a Node without getOrInsertComputed gets one that computes a missing value once", () => {
  for (const { prototype } of [Map, WeakMap]) {
    const own = Object.getOwnPropertyDescriptor(prototype, name) ?? {};
    onTestFinished(() => void Object.defineProperty(prototype, name, own));
    Reflect.deleteProperty(prototype, name);
  }
  supplyOlderNodes();
  for (const map of [new Map<object, undefined>(), new WeakMap<object, undefined>()]) {
    const [a, b] = [{}, {}];
    const keys: unknown[] = [];
    const valueOf = (key: object): unknown => map.getOrInsertComputed(key, (of) => void keys.push(of));
    expect([valueOf(a), valueOf(a), map.has(a), map.has(b)]).toEqual([undefined, undefined, true, false]);
    expect(keys).toEqual([a]);
  }
});

test("a Node that has the method keeps its own", () => {
  const own = Object.getOwnPropertyDescriptor(Map.prototype, name);
  supplyOlderNodes();
  expect(Object.getOwnPropertyDescriptor(Map.prototype, name)).toEqual(own);
});
