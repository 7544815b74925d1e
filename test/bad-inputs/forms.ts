import { formFieldBytesMax, formHeadBytesMax, formPartsMax } from "../../services/gateway/http/read-form.ts";
import type { Case, Section, Told } from "./row.ts";
import { posted, postedJson } from "./sent.ts";

const path = "/v1/audio/transcriptions";
const type = "multipart/form-data; boundary=x";
const part = (head: string, content = "a"): string =>
  `--x\r\nContent-Disposition: form-data${head}\r\n\r\n${content}\r\n`;
const model = part('; name="model"', "scripted");
const file = part('; name="file"; filename="a.wav"');
const end = "--x--\r\n";

function wrong(code: string | null, more: Partial<Told> = {}): Told {
  return { status: 400, code, ...more };
}
const broken = (says: RegExp): Told => wrong("bad_request", { says });

function sends(row: number, what: string, body: string | Buffer, told: Told): Case {
  return { rows: [row], what, sent: posted(body, { path, type }), told: [told] };
}

function typed(what: string, contentType: string): Case {
  const told = { status: 415, code: "unsupported_media_type", says: /boundary/ };
  return {
    rows: [216],
    what,
    sent: posted(model + file + end, { path, type: contentType }),
    told: [told],
  };
}

const framed: readonly Case[] = [
  typed("a form without a boundary", "multipart/form-data"),
  typed("a form with a boundary of 71 characters", `multipart/form-data; boundary=${"x".repeat(71)}`),
  typed("JSON where a form is asked for", "application/json"),
  sends(217, "a form with no byte", "", broken(/begin with the boundary/)),
  sends(217, "a form with another boundary", (model + end).replaceAll("--x", "--y"), broken(/begin with the boundary/)),
  sends(217, "a form with a text before its first part", `a\r\n${model}${end}`, broken(/begin with the boundary/)),
  sends(217, "a form that ends in a part", model.slice(0, -4), broken(/ends before its last boundary/)),
  sends(217, "a form without its last boundary", model + file, broken(/ends before its last boundary/)),
  sends(217, "a form with a text behind its last part", `${model}${file}${end}a`, broken(/goes on behind/)),
  sends(217, "a boundary that goes on", `${model.replace("--x\r", "--x-\r")}${end}`, broken(/behind a boundary/)),
];

const parts: readonly Case[] = [
  sends(218, "a part without a name", part("") + end, broken(/without a name/)),
  sends(218, "a part without a header", `--x\r\n\r\n\r\na\r\n${end}`, broken(/without a name/)),
  sends(218, "a part with the name of a prototype", part('; name="__proto__"') + end, broken(/name is none/)),
  sends(218, "a part whose name has a line break", part('; name="a%0d%0ab"') + end, broken(/name is none/)),
  sends(
    219,
    "two models",
    model + model + file + end,
    wrong("invalid_value", { param: "model", says: /more than once/ }),
  ),
  sends(
    220,
    "a file without a byte",
    model + part('; name="file"; filename="a.wav"', "") + end,
    wrong("invalid_value", { param: "file" }),
  ),
  sends(
    220,
    "a text in place of a file",
    model + part('; name="file"') + end,
    wrong("invalid_type", { param: "file", says: /a file/ }),
  ),
  sends(
    220,
    "a file in place of the model",
    file.replace("file", "model") + file + end,
    wrong("invalid_type", { param: "model" }),
  ),
  sends(220, "no file", model + end, wrong("missing_required_parameter", { param: "file" })),
  sends(
    221,
    "one part more than there may be",
    model + file + part('; name="a[]"').repeat(formPartsMax - 1) + end,
    broken(/64 parts \(formPartsMax\)/),
  ),
  sends(
    222,
    "a part with too long headers",
    `${model}--x\r\nContent-Disposition: form-data; name="a"\r\nX-A: ${"a".repeat(formHeadBytesMax)}\r\n\r\na\r\n${end}`,
    broken(/formHeadBytesMax/),
  ),
  sends(
    222,
    "a part that is coded",
    model + file.replace("\r\n\r\n", "\r\nContent-Transfer-Encoding: base64\r\n\r\n") + end,
    broken(/Content-Transfer-Encoding/),
  ),
  sends(
    223,
    "a field larger than its limit",
    model + file + part('; name="prompt"', "a".repeat(formFieldBytesMax + 1)) + end,
    wrong("string_too_long", { param: "prompt", says: /formFieldBytesMax/ }),
  ),
  sends(
    223,
    "a field that is no UTF-8",
    Buffer.from(model.replace("scripted", "\xff\xfe") + file + end, "latin1"),
    broken(/not UTF-8/),
  ),
  sends(
    223,
    "a number that is none",
    model + file + part('; name="temperature"', "hot") + end,
    wrong("invalid_type", { param: "temperature" }),
  ),
];

const other: readonly Case[] = [
  {
    rows: [224],
    what: "an upload whose length is over the limit, before its body",
    sent: ({ key }) =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: ${type}\r\nContent-Length: 999999999\r\n\r\n`,
    told: [{ status: 413, code: "request_too_large", says: /TRUNKLINE_BODY_BYTES_MAX/ }],
    afterwards: "closed",
  },
  {
    rows: [225],
    what: "a model that does not transcribe",
    sent: posted(model + file + end, { path, type }),
    told: [wrong("unsupported_value", { param: "model" })],
  },
  ...(
    [
      ["a granularity without times", '; name="timestamp_granularities[]"', "word", "timestamp_granularities[]"],
      ["a temperature above 1", '; name="temperature"', "1.5", "temperature"],
      ["speakers that are known", '; name="known_speaker_names[]"', "a", "known_speaker_names[]"],
    ] as const
  ).map(([what, head, value, param]): Case => ({
    rows: [225],
    what,
    sent: posted(model + file + part(head, value) + end, { path, type }),
    told: [
      wrong(
        param === "temperature"
          ? "decimal_above_max_value"
          : param.startsWith("known")
            ? "unsupported_parameter"
            : "invalid_value",
        { param },
      ),
    ],
  })),
  {
    rows: [225],
    what: "speech in a form that is none",
    sent: postedJson({ model: "scripted", input: "a", stream_format: "ogg" }, { path: "/v1/audio/speech" }),
    told: [wrong("invalid_value", { param: "stream_format" })],
  },
  {
    rows: [225],
    what: "an edit of no image",
    sent: posted(model + part('; name="prompt"') + end, { path: "/v1/images/edits", type }),
    told: [wrong("missing_required_parameter", { param: "image" })],
  },
];

const passed: readonly Case[] = (
  [
    ["no text to judge", "/v1/moderations", {}, "missing_required_parameter", "input"],
    ["an empty list to judge", "/v1/moderations", { input: [] }, "empty_array", "input"],
    [
      "an image to judge that is none",
      "/v1/moderations",
      { input: [{ type: "image_url" }] },
      "missing_required_parameter",
      "input[0].image_url",
    ],
    ["a judgement by a model that cannot", "/v1/moderations", { input: "a" }, "unsupported_value", "model"],
    ["no text to cut into tokens", "/tokenize", {}, "missing_required_parameter", "prompt"],
    ["messages to cut into tokens", "/tokenize", { messages: [] }, "unsupported_parameter", "messages"],
    ["tokens of a model whose server tells none", "/tokenize", { prompt: "a" }, "unsupported_value", "model"],
    ["tokens that are texts", "/detokenize", { tokens: ["a"] }, "invalid_type", "tokens[0]"],
    ["a token below 0", "/detokenize", { tokens: [-1] }, "integer_below_min_value", "tokens[0]"],
  ] as const
).map(([what, at, fields, code, param]) => ({
  rows: [226],
  what,
  sent: postedJson({ model: "scripted", ...fields }, { path: at }),
  told: [wrong(code, { param })],
}));

export const forms: Section = {
  title: "forms, speech, images, judgements and tokens",
  cases: [...framed, ...parts, ...other, ...passed],
};
