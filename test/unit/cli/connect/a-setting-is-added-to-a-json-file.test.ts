import { assert, constantFrom, dictionary, jsonValue, property, string } from "fast-check";
import { expect, test } from "vitest";
import { readJson, setJson } from "../../../../services/cli/connect/edit-json.ts";

const added: readonly (readonly [why: string, before: string, path: readonly (string | number)[], after: string])[] = [
  ["an empty file", "", ["env", "A"], '{\n  "env": {\n    "A": 1\n  }\n}\n'],
  ["a file of comments alone", "// mine", ["a"], '// mine\n{\n  "a": 1\n}\n'],
  ["an empty object", "{}\n", ["a"], '{\n  "a": 1\n}\n'],
  ["an object that holds a comment alone", "{ // mine\n}\n", ["a"], '{\n  "a": 1 // mine\n}\n'],
  ["an object on one line", '{"b": 2}', ["a"], '{\n  "b": 2,\n  "a": 1\n}'],
  [
    "an object whose last line has a comment",
    '{\n\t"b": 2 // two, not one\n\t/* the end */\n}',
    ["a"],
    '{\n\t"a": 1,\n\t"b": 2 // two, not one\n\t/* the end */\n}',
  ],
  ["an object with a trailing comma", '{\n  "b": 2, // two\n}\n', ["a"], '{\n  "a": 1,\n  "b": 2, // two\n}\n'],
  ["a comma that is only in a comment", '{\n  "b": 2 // a, b\n}\n', ["a"], '{\n  "a": 1,\n  "b": 2 // a, b\n}\n'],
  ["a list", '{\n    "l": [\n        7\n    ]\n}\n', ["l", 1], '{\n    "l": [\n        7,\n        1\n    ]\n}\n'],
  [
    "a file with Windows' line ends",
    '{\r\n  "b": {}\r\n}\r\n',
    ["b", "a"],
    '{\r\n  "b": {\r\n    "a": 1\r\n  }\r\n}\r\n',
  ],
  ["a file with a byte order mark", '\uFEFF{\n "b": 2\n}', ["a"], '\uFEFF{\n "b": 2,\n "a": 1\n}'],
];
test.each(added)("a setting is added to %s", (_, before, path, after) => {
  expect(setJson(before, path, 1)).toBe(after);
});

test("a setting is replaced where it stands, and everything around it stays", () => {
  const before = '{ "a": /* old */ {"x": [1, 2]}, // why\n  "b": 2 }';
  expect(setJson(before, ["a"], "new")).toBe('{ "a": /* old */ "new", // why\n  "b": 2 }');
});

const refused: readonly (readonly [why: string, before: string, path: readonly (string | number)[], said: RegExp])[] = [
  ["a syntax error", '{\n  "a": 1\n  "b": 2\n}', ["c"], /is no JSON \(CommaExpected in line 3\)/],
  ["a text in place of an object", '{"env": "none"}', ["env", "A"], /holds no object at env/],
  ["an object in place of a list", '{"l": {}}', ["l", 0], /holds no list at l/],
  ["a list as the whole", "[]", ["a"], /holds no object at the whole/],
  ["a field that is there twice", '{"a": 2, "a": 3}', ["a"], /names a twice/],
];
test.each(refused)("a file with %s is refused", (_, before, path, said) => {
  expect(() => setJson(before, path, 1)).toThrow(said);
});

/** Any value that JSON has, which is not -0. */
const json = (maxDepth: number) => jsonValue({ maxDepth }).map((value): unknown => JSON.parse(JSON.stringify(value)));

test("any value can be set in any object, and no line of the file is lost", () => {
  const object = dictionary(string({ maxLength: 5 }), json(3), { noNullPrototype: true });
  const layout = constantFrom(undefined, "  ", "\t");
  assert(
    property(object, layout, string(), json(2), (root, indent, name, value) => {
      const before = `// first\n${JSON.stringify(root, null, indent)} // last\n`;
      const after = setJson(before, [name], value);
      expect(readJson(after)).toEqual({ ...root, [name]: value });
      expect(after).toMatch(/^\/\/ first\n[^]*\/\/ last\n$/);
      if (Object.hasOwn(root, name)) return;
      const lines = after.split("\n").map((line) => line.replace(/,$/, ""));
      for (const line of before.split("\n").slice(1, -2)) expect(lines).toContain(line.replace(/,$/, ""));
    }),
  );
});
