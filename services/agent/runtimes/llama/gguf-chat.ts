import { Fault, originOf } from "#shared/fault/fault.ts";
import { contentText, type ChatBody, type ChatMessage, type ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { argumentsOf, honouring, refuseUnsupported } from "../refuse-unsupported.ts";
import type { ChatRun, EmitEvents } from "../runtime.ts";
import { answer, type GgufRequest, type Generation, type GenerationOptions, type EngineOutput } from "./gguf-answer.ts";
import type {
  EngineChat,
  ChatWrapper,
  FunctionCall,
  Functions,
  HistoryItem,
  EngineModel,
  GrammarSchema,
  Token,
} from "./gguf-engine.ts";
import type { GgufFile } from "./gguf-file.ts";
import type { GgufModel, LoadedModel } from "./gguf-model.ts";
import { anyObject, answerSchema, parametersSchema, withoutNulls } from "./gguf-schema.ts";

const honoured = honouring("logit_bias", "response_format", "top_k", "min_p", "repeat_penalty");

/** Answers one chat on a model of this process. */
export function ggufChat(request: GgufRequest<ChatRun>, emit: EmitEvents): Promise<void> {
  const { run, gguf, engine } = request;
  const { body, onProgress } = run;
  const { file } = gguf;
  refuseUnsupported(body, honoured);
  const { tools, functions, history, thinks } = conversationOf(body, file);
  const schema = heldTo(body, functions);
  const prepare = async ({ model }: LoadedModel): Promise<Generation> => {
    const wrapper = withEffort(body, file);
    const grammar = schema === undefined ? undefined : await grammarOf(schema, request);
    return {
      prompt: promptTokens(history, { wrapper, functions, model }),
      async generate(contextSequence, options, output) {
        // The engine takes no functions beside a grammar, so the wrapper adds them to the prompt.
        const chatWrapper = grammar === undefined ? wrapper : describing(functions, wrapper);
        const chat = new engine.library.LlamaChat({ contextSequence, chatWrapper });
        // Called when the window is full, which `maxTokens` allows: the engine does not count the marks of calls. It would
        // forget the beginning of the conversation.
        const inWindow = { ...options, contextShift: { size: output.windowIsFull } };
        const text = isContinued(body.messages) ? output.text : trimmedStart(output.text);
        const call = (name: string, params: unknown): void => {
          const parameters = tools.find((tool) => tool.function.name === name)?.function.parameters;
          output.call(name, withoutNulls(params, parameters));
        };
        let json = "";
        try {
          const tokensBefore = contextSequence.tokenMeter.usedOutputTokens;
          if (grammar !== undefined && thinks && body.reasoning_effort !== "none") {
            await think(chat, history, { options: inWindow, output });
          }
          const maxTokens = options.maxTokens - (contextSequence.tokenMeter.usedOutputTokens - tokensBefore);
          if (maxTokens < 1) return { metadata: { stopReason: "maxTokens" } };
          const generated = await chat.generateResponse(history, {
            ...inWindow,
            maxTokens,
            ...(grammar !== undefined ? { grammar } : { functions }),
            ...(body.parallel_tool_calls === false && { maxParallelFunctionCalls: 1 }),
            onResponseChunk({ segmentType, text: piece, tokens }) {
              if (segmentType === "thought") output.thought(piece, tokens.length);
              else if (grammar === undefined || functions === undefined) text(piece);
              else json += piece;
            },
            onFunctionCallParamsChunk: () => onProgress(),
            onFunctionCall: ({ functionName, params }) => call(functionName, params),
          });
          if (json !== "" && generated.metadata.stopReason !== "maxTokens") tellHeld(json, { functions, call, output });
          return generated;
        } finally {
          chat.dispose();
        }
      },
    };
  };
  return answer(request, prepare, emit);
}

/** Returns the tokens of a chat's prompt. A model that is not in memory has no tokenizer to count with. */
export async function ggufCount({ body }: ChatRun, gguf: GgufModel): Promise<number> {
  if (!gguf.loaded) throw invalid("model", "is not in memory, so its tokens cannot be counted");
  const { functions, history } = conversationOf(body, gguf.file);
  using loaded = await gguf.hold(() => undefined);
  return promptTokens(history, { wrapper: withEffort(body, gguf.file), functions, model: loaded.model }).length;
}

/** Reads a chat into the engine's form, from which the prompt is made. */
function conversationOf(body: ChatBody, file: GgufFile) {
  const tools = body.tool_choice === "none" ? [] : toolsOf(body);
  const functions = functionsOf(tools, file);
  const history = historyOf(body.messages, file);
  const thinks = file.thinks && !isContinued(body.messages);
  if (thinks && body.reasoning_effort === "none") appendResponse(history, thought(""));
  return { tools, functions, history, thinks };
}

/** Lets the model think before a grammar, which would hold the thought too. Adds the thought to the history. */
async function think(
  chat: EngineChat,
  history: HistoryItem[],
  { options, output }: { readonly options: GenerationOptions; readonly output: EngineOutput },
): Promise<void> {
  const over = new AbortController();
  let text = "";
  try {
    await chat.generateResponse(history, {
      ...options,
      signal: AbortSignal.any([options.signal, over.signal]),
      onResponseChunk({ segmentType, segmentEndTime, text: piece, tokens }) {
        if (segmentType === "thought") {
          text += piece;
          output.thought(piece, tokens.length);
        }
        if (segmentType !== "thought" ? piece.trim() !== "" : segmentEndTime !== undefined) over.abort();
      },
    });
  } catch (error) {
    if (!over.signal.aborted) throw error;
  }
  appendResponse(history, thought(text));
}

/** Returns the tools that the model may call. A `tool_choice` that names a tool leaves only that one. */
function toolsOf({ tools = [], tool_choice: choice }: ChatBody): readonly ToolDefinition[] {
  if (typeof choice !== "object") return tools;
  const named = tools.filter((tool) => tool.function.name === choice.function.name);
  if (named.length === 0) throw invalid("tool_choice", "must name a tool of 'tools'");
  return named;
}

function functionsOf(tools: readonly ToolDefinition[], { controls }: GgufFile): Functions | undefined {
  if (tools.length === 0) return undefined;
  const functions = tools.map(({ function: { name, description = "", parameters } }) => {
    return [name, { description, params: parametersSchema(parameters) }];
  });
  return withoutControls(Object.fromEntries(functions) as Functions, controls);
}

/**
 * Returns the schema of all answers that a request admits, if it asks for JSON or insists on a tool. A grammar then holds
 * the whole answer, which is one call at most.
 */
function heldTo(body: ChatBody, functions: Functions | undefined): GrammarSchema | undefined {
  const { tool_choice: choice, response_format: format = { type: "text" } } = body;
  const insists = choice === "required" || typeof choice === "object";
  if (!insists && format.type === "text") return undefined;
  if (insists && functions === undefined) throw invalid("tool_choice", "needs 'tools'");
  const calls = Object.entries(functions ?? {}).map(([name, { params }]) => {
    const { $defs, ...parameters } = params;
    const properties = { name: { const: name }, arguments: parameters };
    return { type: "object", properties, ...($defs !== undefined && { $defs }) };
  });
  if (insists) return { oneOf: calls };
  const wanted = format.type === "json_schema" ? format.json_schema.schema : undefined;
  const json = wanted === undefined ? anyObject : answerSchema(wanted, "response_format.json_schema.schema");
  return calls.length === 0 ? json : { oneOf: [json, ...calls] };
}

/** Tells a whole answer that a grammar held: a call, or the JSON that `response_format` asks for. */
function tellHeld(
  json: string,
  given: {
    readonly functions: Functions | undefined;
    readonly call: (name: string, params: unknown) => void;
    readonly output: EngineOutput;
  },
): void {
  const { name, arguments: params }: { name?: unknown; arguments?: unknown } = JSON.parse(json);
  if (typeof name === "string" && Object.hasOwn(given.functions ?? {}, name) && params !== undefined)
    given.call(name, params);
  else given.output.text(json);
}

/**
 * Translates a conversation into the engine's form, in which a tool call and its result are one item, and all that the
 * model says between two other messages is one item. The last item is the model's: its answer follows there.
 */
function historyOf(messages: readonly ChatMessage[], { controls }: GgufFile): HistoryItem[] {
  const history: HistoryItem[] = [];
  const calls = new Map<string, FunctionCall>();
  for (const [at, message] of messages.entries()) {
    const text = contentText(message.content);
    if (message.role === "system" || message.role === "user") history.push({ type: message.role, text });
    else if (message.role === "tool") {
      const call = calls.get(message.tool_call_id);
      if (call === undefined) throw invalid(`messages[${at}].tool_call_id`, "must name a call of an earlier message");
      call.result = text;
    } else {
      const { reasoning_content: reasoning, tool_calls: called = [] } = message;
      appendResponse(history, ...(reasoning ? [thought(reasoning)] : []), ...(text === "" ? [] : [text]));
      for (const [index, { id, function: given }] of called.entries()) {
        const object = argumentsOf(given.arguments, `messages[${at}].tool_calls[${index}].function.arguments`);
        const params = withoutControls(object, controls);
        const call: FunctionCall = {
          type: "functionCall",
          name: given.name,
          params,
          result: undefined,
          startsNewChunk: index === 0,
        };
        calls.set(id, call);
        appendResponse(history, call);
      }
    }
  }
  appendResponse(history);
  return history;
}

type ModelResponse = Extract<HistoryItem, { type: "model" }>["response"];

function appendResponse(history: HistoryItem[], ...items: ModelResponse): void {
  const last = history.at(-1);
  if (last?.type === "model") last.response.push(...items);
  else history.push({ type: "model", response: items });
}

/** A thought that is over. An empty one makes the model answer at once. */
function thought(text: string): ModelResponse[number] {
  return { type: "segment", segmentType: "thought", text, ended: true };
}

/** True if the conversation ends with text of the assistant, which the answer continues. */
function isContinued(messages: readonly ChatMessage[]): boolean {
  return messages.at(-1)?.role === "assistant";
}

/** gpt-oss has grades of thinking, which stand in its prompt. Any other model thinks as it does, or not at all. */
function withEffort({ reasoning_effort: effort }: ChatBody, { wrapper }: GgufFile): ChatWrapper {
  if (wrapper.wrapperName !== "Harmony" || effort === undefined || effort === "none") return wrapper;
  const grades = { minimal: "low", low: "low", medium: "medium", high: "high", xhigh: "high", max: "high" } as const;
  return Object.create(wrapper, { reasoningEffort: { value: grades[effort] } }) as ChatWrapper;
}

/** An integer in the engine's grammars, which may have an exponent there, such as `0e569`. */
const integer = '"-"? ("0" | [1-9] [0-9]{0,15})';
const exponent = ' ([eE] [-+]? ("0" | [1-9] [0-9]{0,15}))?';

async function grammarOf(schema: GrammarSchema, { run: { body }, engine }: GgufRequest<ChatRun>): Promise<object> {
  try {
    const { grammar, stopGenerationTriggers } = await engine.llama.createGrammarForJsonSchema(schema);
    const plain = grammar.replaceAll(integer + exponent, integer);
    return await engine.llama.createGrammar({ grammar: plain, stopGenerationTriggers, trimWhitespaceSuffix: true });
  } catch (error) {
    const param = body.response_format === undefined ? "tool_choice" : "response_format";
    const message = `The runtime of this model cannot hold an answer to this '${param}'.`;
    throw new Fault("unsupported_value", { message, param, internal: originOf(error) });
  }
}

function describing(availableFunctions: Functions | undefined, wrapper: ChatWrapper): ChatWrapper {
  const generateContextState: ChatWrapper["generateContextState"] = (options) =>
    wrapper.generateContextState({ ...options, availableFunctions });
  return Object.create(wrapper, { generateContextState: { value: generateContextState } }) as ChatWrapper;
}

function promptTokens(
  chatHistory: readonly HistoryItem[],
  given: { readonly wrapper: ChatWrapper; readonly functions: Functions | undefined; readonly model: EngineModel },
): Token[] {
  try {
    const state = given.wrapper.generateContextState({ chatHistory, availableFunctions: given.functions });
    return state.contextText.tokenize(given.model.tokenizer);
  } catch (error) {
    const message = "The chat template of this model does not take a conversation of this form.";
    throw new Fault("invalid_value", { message, param: "messages", internal: originOf(error), cause: error });
  }
}

/**
 * Breaks each control text in a value, such as the text that ends a turn. The engine writes tools and calls as a part
 * of the template, in which a control text steers the model. Messages need none of this.
 */
function withoutControls<Value>(value: Value, controls: RegExp): Value {
  const broken = JSON.stringify(value).replace(controls, (text) => `${text.slice(0, 1)}\u200B${text.slice(1)}`);
  return JSON.parse(broken) as Value;
}

/** Drops the white space before an answer: templates leave some after thoughts and before calls. */
function trimmedStart(take: EngineOutput["text"]): EngineOutput["text"] {
  let atBeginning = true;
  return (piece) => {
    const trimmed = atBeginning ? piece.trimStart() : piece;
    if (trimmed !== "") atBeginning = false;
    take(trimmed);
  };
}

function invalid(param: string, what: string): Fault {
  return new Fault("invalid_value", { message: `'${param}' ${what}.`, param });
}
