import { type logText, timeText, onOneLine } from "#shared/process/log.ts";
import { statusOf } from "./find-gateway.ts";
import { grouped } from "./quantity-text.ts";
import { cutText, padText } from "./table-text.ts";

/** The fields of a request's log line that its row shows. */
interface RequestLine {
  readonly time: number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly outcome: string;
  readonly ms: number;
  readonly model?: string;
  readonly answeredBy?: string;
  readonly machine?: string;
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  readonly firstTokenMs?: number;
}

type Paint = (text: string) => string;

const headings = ["time", "status", "model", "machine", "prompt", "answer", "first", "total"];
/** The widths of all columns but the model's, and the room that they need, with that of most codes behind them. */
const [timeWidth, statusWidth, machineWidth, countWidth, secondsWidth] = [8, 6, 10, 6, 8];
const otherWidth = 81;
const modelWidths = { min: 12, max: 28 };
const gap = "  ";

/**
 * Returns a formatter for the log lines of requests on a terminal: a row for each, and headings above the first. A row
 * shows the tokens, the time to the first token and the total time. A failure shows its code.
 */
export function requestRows(terminal: { readonly columns?: number | undefined }): typeof logText {
  let isFirst = true;
  return (line, { coloured }) => {
    const modelWidth = Math.max(modelWidths.min, Math.min(modelWidths.max, (terminal.columns ?? 0) - otherWidth));
    const heading = isFirst ? `\n${row(headings, modelWidth)}\n` : "";
    isFirst = false;
    return `${heading}${requestRow(JSON.parse(line) as RequestLine, { modelWidth, coloured })}\n`;
  };
}

function requestRow(
  request: RequestLine,
  { modelWidth, coloured }: { readonly modelWidth: number; readonly coloured: boolean },
): string {
  const { outcome, status, model = `${request.method} ${request.path}`, answeredBy, machine = "" } = request;
  const judged = outcome === "ok" ? status : statusOf(outcome);
  const colour = judged < 400 ? "\u001b[32m" : judged < 500 ? "\u001b[33m" : "\u001b[31m";
  const paint: Paint = (text) => (coloured ? `${colour}${text}\u001b[39m` : text);
  const count = (tokens?: number): string => (tokens === undefined ? "" : grouped.format(tokens));
  const seconds = (ms?: number): string => (ms === undefined ? "" : `${(ms / 1_000).toFixed(2)} s`);
  const cells = [
    timeText(request.time),
    String(status),
    answeredBy === undefined ? model : `${model} → ${answeredBy}`,
    machine,
    count(request.promptTokens),
    count(request.completionTokens),
    seconds(request.firstTokenMs),
    seconds(request.ms),
  ];
  return row(cells.map(onOneLine), modelWidth, { code: outcome === "ok" ? "" : outcome, paint });
}

/**
 * Lines up the cells of a row. A model without a machine takes the room of both, and a code that of the tokens where
 * there are none.
 */
function row(
  [
    time = "",
    status = "",
    model = "",
    machine = "",
    prompt = "",
    answer = "",
    first = "",
    total = "",
  ]: readonly string[],
  modelWidth: number,
  { code = "", paint = (text) => text }: { readonly code?: string; readonly paint?: Paint } = {},
): string {
  const right = (cell: string, width: number): string => padText(cell, width, { side: "right" });
  const left = (cell: string, width: number): string => padText(cutText(cell, width), width);
  const tokens = [right(prompt, countWidth), right(answer, countWidth), right(first, secondsWidth)].join(gap);
  const hasTokens = tokens.trim() !== "";
  return [
    left(time, timeWidth),
    padText(status, statusWidth, { side: "right", text: paint(status) }),
    machine === ""
      ? left(model, modelWidth + gap.length + machineWidth)
      : left(model, modelWidth) + gap + left(machine, machineWidth),
    hasTokens ? tokens : padText(code, tokens.length, { text: paint(code) }),
    right(total, secondsWidth),
    ...(hasTokens && code !== "" ? [paint(code)] : []),
  ].join(gap);
}
