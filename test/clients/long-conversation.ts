import { join } from "node:path";
import type { CodingClient } from "./coding-clients.ts";
import type { ScriptedStep } from "./scripted-model.ts";

/** A conversation of thirty turns: three tasks, each of nine calls and a closing word. */
const chaptersOfTask = 3;
const chapters = [
  "The harbour was quiet when the first boat came in, and nobody on the quay had slept.",
  "Anna counted the crates twice, because the number in the book was not the number on the quay.",
  "The clerk wrote both numbers down, drew a line under them, and went to look for his hat.",
  "By noon the wind had turned, and the boats that should have left stayed where they were.",
  "In the hall of the exchange the price of salt stood in white chalk on a black board.",
  "Somebody had wiped out the last digit, and four men argued about what it had been.",
  "Anna knew the digit, for she had seen it written, but no one had asked her yet.",
  "When they asked at last, she named her price first, and it was a crate of oranges.",
  "The book closed with the right number in it, and the hat was found under the scales.",
] as const;

export const longTasks = ["Write", "Continue", "Finish"].map(
  (verb, place) =>
    `${verb} the story: chapters ${place * chaptersOfTask + 1} to ${(place + 1) * chaptersOfTask}, a file each. Count the words of each.`,
);
/** Nine calls of each task and a closing word. */
export const turns = 30;
export const closings = longTasks.map((_task, place) => `Part ${place + 1} of the story is written and counted.`);

const textOf = (chapter: string, number: number): string => `Chapter ${number}\n\n${chapter}\n`;

/** Texts that are ours wherever they occur in the traffic. */
export const longTexts = [
  ...longTasks,
  ...closings,
  ...chapters,
  ...chapters.flatMap((_chapter, place) => [`Chapter ${place + 1}`, countOf(place + 1), `chapter-${place + 1}.txt`]),
];

/** Answers of the model to a client in whose project the story is written. The first count fails. */
export function longScript({ tools }: CodingClient, project: string): readonly ScriptedStep[] {
  return closings.flatMap((says, task) => {
    const calls = chapters.flatMap((chapter, place): ScriptedStep[] => {
      if (Math.floor(place / chaptersOfTask) !== task) return [];
      const file = join(project, `chapter-${place + 1}.txt`);
      return [tools.run(countOf(place + 1)), tools.write(file, textOf(chapter, place + 1)), tools.read(file)];
    });
    return [...calls, { says }];
  });
}

/** The command that counts the words of the chapter before. */
function countOf(number: number): string {
  return `wc -w chapter-${number - 1}.txt`;
}
