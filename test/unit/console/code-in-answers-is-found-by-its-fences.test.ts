import { expect, test } from "vitest";
import { splitFences } from "../../../services/console/fences.ts";

test("an answer is split into prose and fenced code, with the language of each", () => {
  const answer = "First:\n\n```python\nprint(1)\n\nprint(2)\n```\nThen:\n~~~\nls\n~~~\n\n";
  expect(splitFences(answer)).toEqual([
    { text: "First:" },
    { text: "print(1)\n\nprint(2)", language: "python" },
    { text: "Then:" },
    { text: "ls", language: "" },
  ]);
});

test("code whose end has not come is code, and so is a shorter fence within a longer one", () => {
  expect(splitFences("```js title=x\nlet a")).toEqual([{ text: "let a", language: "js" }]);
  expect(splitFences("````md\n```sh\nls\n```\n````\nDone.")).toEqual([
    { text: "```sh\nls\n```", language: "md" },
    { text: "Done." },
  ]);
});

test("backticks within a line are prose, and an answer without code is one piece", () => {
  expect(splitFences("Use ```ls``` here.\n```ls``` too")).toEqual([{ text: "Use ```ls``` here.\n```ls``` too" }]);
  expect(splitFences(" \n")).toEqual([]);
});
