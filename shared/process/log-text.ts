/** Formats log lines for a terminal: a short time, the level, the message, and the other fields as `name=value`. */

const levels: Readonly<Record<number, readonly [word: string, colour: string]>> = {
  10: ["TRACE", "\u001b[2m"],
  20: ["DEBUG", "\u001b[2m"],
  30: ["INFO ", "\u001b[32m"],
  40: ["WARN ", "\u001b[33m"],
  50: ["ERROR", "\u001b[31m"],
  60: ["FATAL", "\u001b[31m"],
};
const plain = "\u001b[0m";

/** Matches the characters that control a terminal. Some texts in a log come from clients and other hosts. */
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
/** Matches a text that needs no quotes. */
const word = /^[^\s"=]+$/;

interface Line {
  readonly time: number;
  readonly level: number;
  readonly msg?: string;
  readonly [name: string]: unknown;
}

/** Returns the text of a log line, which is one JSON object. The time is the local one. */
export function logText(line: string, { coloured }: { readonly coloured: boolean }): string {
  const { time, level, pid: _pid, name: _name, msg = "", err, ...fields } = JSON.parse(line) as Line;
  const [text, colour] = levels[level] ?? [String(level), ""];
  const shown = coloured ? `${colour}${text}${plain}` : text;
  const pairs = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`);
  const words = [msg, ...pairs].filter((each) => each !== "").map(safe);
  return `${timeText(new Date(time))} ${shown} ${words.join(" ")}\n${errorText(err)}`;
}

function timeText(time: Date): string {
  const [hours, minutes, seconds] = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) =>
    String(part).padStart(2, "0"),
  );
  return `${hours}:${minutes}:${seconds}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

function valueText(value: unknown): string {
  return typeof value === "string" && word.test(value) ? value : JSON.stringify(value);
}

/** Returns the stack of an error, on lines of their own, or what there is instead of one. */
function errorText(err: unknown): string {
  if (err === undefined) return "";
  const stack = typeof err === "object" && err !== null && "stack" in err ? String(err.stack) : valueText(err);
  return stack
    .split("\n")
    .map((each) => `  ${safe(each.trimEnd())}\n`)
    .join("");
}

function safe(text: string): string {
  return text.replace(controls, "?");
}
