import type { Sentences } from "./field-sentences.ts";

const what = "What the item is.";
const partType = "What the part is.";
const text = "The text.";
/** The fields of an answer's item that the client may send back unchanged. */
const asAnswered: Sentences = {
  id: "The item's id, as the answer had it. It means nothing to a model.",
  status: "How the item stood, as the answer had it. It means nothing to a model.",
};

/** Descriptions of the fields of the Responses API that clients send. */
export const responseSentences = {
  ResponseRequest: {
    model: "The id of the model that is to answer: one of `GET /v1/models`.",
    input: "The conversation so far: what the user says, or all of its items, the oldest first.",
    instructions: "What the model is to go by in this answer; it stands before the input.",
    stream: "Whether the answer is sent piece by piece, as server-sent events. False unless given.",
    stream_options: "How a stream is to be; only with `stream`. Nothing in it means anything here.",
    tools: "The functions that the model may call. Only for models whose `capabilities.tools` is true.",
    tool_choice: "Which of the tools may be called, and whether one has to be. `auto` unless given.",
    parallel_tool_calls: "Whether the model may call several tools at once. True unless given.",
    max_output_tokens: "How many tokens the answer has at most, thoughts included. As many as fit unless given.",
    temperature: "How freely the model chooses its words: 0 is the least. The model's own unless given.",
    top_p: "Of how much of the likeliest words the model chooses: 0.1 is of the likeliest tenth.",
    top_logprobs: "How many likely others are told beside each token; only where `include` asks for it.",
    include: "`message.output_text.logprobs` tells how likely each token was. All else means nothing here.",
    text: "How the text is to be.",
    "text.format": "What form it has. `text` unless given.",
    reasoning: "How the model is to think.",
    "reasoning.effort": "How much it thinks before it answers, for models whose `capabilities.thinking` is true.",
    "reasoning.summary": "Tells the thoughts as a summary, as some clients read them. It leaves nothing out.",
    metadata: "Your own notes, which the response repeats; they are not kept.",
    store: "No response is kept, so that true means nothing here.",
    truncation: "No input is cut: what is too long is an error, and `auto` means nothing here.",
  },
  InputMessage: {
    type: `${what} May be left out where there is a \`role\`.`,
    role: "Who speaks.",
    content: "The text, or parts of it; of a user also images, for models whose `capabilities.vision` is true.",
    "content.type": partType,
    "content.text": text,
    "content.image_url": "The image itself, as a `data:` URL. Other addresses are refused: machines fetch nothing.",
    "content.detail": "How closely the image is looked at, where the runtime can choose.",
    "content.annotations": "As the answer had them. They mean nothing to a model.",
    "content.logprobs": "As the answer had them. They mean nothing to a model.",
    "content.refusal": "What the model said in refusing; taken as text.",
    ...asAnswered,
  },
  InputReasoning: {
    type: what,
    summary: "What the model thought, in short; read where there is no content.",
    "summary.type": partType,
    "summary.text": text,
    content: "What the model thought.",
    "content.type": partType,
    "content.text": text,
    ...asAnswered,
  },
  InputFunctionCall: {
    type: what,
    call_id: "The id of this call; its `function_call_output` names it.",
    namespace: "The namespace that it stands in, if it does.",
    name: "The function's name.",
    arguments: "Its arguments, as a text of JSON.",
    ...asAnswered,
  },
  InputFunctionCallOutput: {
    type: what,
    call_id: "The id of the call that this answers.",
    output: "What the function gave: a text, or parts of it.",
    "output.type": partType,
    "output.text": text,
    ...asAnswered,
  },
  ResponseTool: { type: "A search of the web, which some clients offer by habit: it is left out." },
  NamespaceTool: {
    type: "What the tool is: functions under a common name.",
    name: "The common name. The model is told both names in one, with `__` between.",
    description: "What they have in common. The model is told it with each function.",
    tools: "The functions.",
  },
  FunctionTool: {
    type: "What the tool is: a function of your own.",
    name: "Its name: letters, digits, underscores and hyphens.",
    description: "What it does and when to call it, for the model to read.",
    parameters: "What it takes, as a JSON Schema of an object. Nothing unless given.",
    strict: "Whether the model has to keep to the schema exactly, where the runtime can make it.",
  },
  ResponseToolChoice: {
    type: "One function that is to be called, or some of the tools that may be.",
    name: "The name of the function that is to be called, which is one of `tools`; that of its namespace is left out.",
    mode: "Whether one of the allowed tools may be called, or has to be.",
    tools: "The only tools that may be called.",
    "tools.type": "What the tool is.",
    "tools.name": "Its name, which is one of `tools`.",
  },
  TextFormat: {
    type: "Any text, any JSON object, or JSON that fits a schema.",
    name: "A name for the schema.",
    description: "What the schema is for, for the model to read.",
    schema: "The JSON Schema itself.",
    strict: "Whether the answer has to fit it exactly, where the runtime can make it.",
  },
  ResponseLogprob: {
    token: "The token, as text.",
    logprob: "How likely it was, as a logarithm: 0 is certain.",
    bytes: "The bytes of the token in UTF-8; none where it has none.",
    top_logprobs: "The tokens that were likeliest in its place: as many as `top_logprobs` asked for.",
    "top_logprobs.token": "The token, as text.",
    "top_logprobs.logprob": "How likely it was, as a logarithm.",
    "top_logprobs.bytes": "The bytes of the token in UTF-8; none where it has none.",
  },
} as const satisfies Readonly<Record<string, Sentences>>;
