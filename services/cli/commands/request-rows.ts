import { type logText, timeText } from "#shared/process/log.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { statusOf } from "../site/find-gateway.ts";
import { grouped, secondsText } from "../terminal/quantity-text.ts";
import { fitText } from "../terminal/table-text.ts";

/** The fields of a request's log line that its row shows. */
type RequestLine = Readonly<
  Record<"time" | "status" | "ms", number> &
    Record<"method" | "path" | "outcome", string> &
    Partial<Record<"model" | "answeredBy" | "machine", string>> &
    Partial<Record<"promptTokens" | "completionTokens" | "firstTokenMs", number>>
>;

const modelWidths = { min: 12, max: 28 };
/** The width of all columns but the model's, and of most codes behind them. */
const otherWidth = 81;

/**
 * Returns a formatter for the log lines of requests on a terminal: a row for each, and headings above the first. A row
 * shows the tokens, the time to the first token and the total time. A failure shows its code.
 */
export function requestRows(terminal: { readonly columns?: number | undefined }): typeof logText {
  let isFirst = true;
  return (line, { coloured }) => {
    const modelWidth = Math.max(modelWidths.min, Math.min(modelWidths.max, (terminal.columns ?? 0) - otherWidth));
    const headings = ["time", "status", "model", "machine", "prompt", "answer", "first", "total", ""];
    const heading = isFirst ? `\n${row(headings, modelWidth)}\n` : "";
    isFirst = false;
    const request = JSON.parse(line) as RequestLine;
    const text = row(cellsOf(request).map(onOneLine), modelWidth);
    return `${heading}${coloured ? painted(text, request) : text}\n`;
  };
}

function cellsOf(request: RequestLine): readonly string[] {
  const { outcome, model = `${request.method} ${request.path}`, answeredBy, machine = "" } = request;
  const counts = [request.promptTokens, request.completionTokens];
  return [
    timeText(request.time),
    String(request.status),
    answeredBy === undefined ? model : `${model} → ${answeredBy}`,
    machine,
    ...counts.map((count) => (count === undefined ? "" : grouped.format(count))),
    request.firstTokenMs === undefined ? "" : secondsText(request.firstTokenMs),
    secondsText(request.ms),
    outcome === "ok" ? "" : outcome,
  ];
}

/**
 * Lines up the cells of a row. A model without a machine takes the room of both, and a code that of the tokens where
 * there are none.
 */
function row(cells: readonly string[], modelWidth: number): string {
  const [
    time = "",
    status = "",
    model = "",
    machine = "",
    prompt = "",
    answer = "",
    first = "",
    total = "",
    code = "",
  ] = cells;
  const hasTokens = prompt + answer + first !== "";
  const fitted = [
    fitText(time, 8),
    fitText(status, 6, "right"),
    ...(machine === "" ? [fitText(model, modelWidth + 12)] : [fitText(model, modelWidth), fitText(machine, 10)]),
    ...(hasTokens
      ? [fitText(prompt, 6, "right"), fitText(answer, 6, "right"), fitText(first, 8, "right")]
      : [code.padEnd(24)]),
    fitText(total, 8, "right"),
    hasTokens ? code : "",
  ];
  return fitted.join("  ").trimEnd();
}

/** Colours the status of a row, and all that follows it in a failure. */
function painted(text: string, { outcome, status }: RequestLine): string {
  const isOk = outcome === "ok";
  const judged = isOk ? status : statusOf(outcome);
  const colour = judged < 400 ? "\u001b[32m" : judged < 500 ? "\u001b[33m" : "\u001b[31m";
  const to = isOk ? "00:00:00  status".length : text.length;
  const from = "00:00:00     ".length;
  return `${text.slice(0, from)}${colour}${text.slice(from, to)}\u001b[39m${text.slice(to)}`;
}
