import type { Signal } from "@preact/signals";
import { Field, TextField, type TextFieldProps } from "../forms.tsx";

/** The parameters of a chat as a form has them: texts. */
export type ChatOptions = Readonly<Record<"system" | "temperature" | "maxTokens" | "tools", string>>;

export const defaultOptions: ChatOptions = { system: "", temperature: "", maxTokens: "", tools: "" };

/** Returns the parameters as the public API takes them. Throws for tools that are no JSON. */
export function parametersOf({ temperature, maxTokens, tools }: ChatOptions): object {
  return {
    ...(temperature !== "" && { temperature: Number(temperature) }),
    ...(maxTokens !== "" && { max_tokens: Number(maxTokens) }),
    ...(tools.trim() !== "" && { tools: toolsIn(tools) }),
  };
}

function toolsIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('Tools must be a JSON list, as in OpenAI\'s API: [{"type": "function", …}]');
  }
}

export function OptionFields({ options }: { readonly options: Signal<ChatOptions> }) {
  const field = (name: keyof ChatOptions) => ({
    value: options.value[name],
    onText: (text: string) => (options.value = { ...options.value, [name]: text }),
  });
  return (
    <details class="options">
      <summary>System prompt and parameters</summary>
      <Area label="System prompt" {...field("system")} />
      <div class="two">
        <TextField label="Temperature" type="number" {...field("temperature")} placeholder="of the model" />
        <TextField label="Longest answer, in tokens" type="number" {...field("maxTokens")} placeholder="no limit" />
      </div>
      <Area
        label="Tools, as JSON"
        {...field("tools")}
        hint="A list as in OpenAI's API. The playground shows calls and runs none."
      />
    </details>
  );
}

function Area({ label, hint, value, onText }: Pick<TextFieldProps, "label" | "hint" | "value" | "onText">) {
  return (
    <Field label={label} hint={hint}>
      {(id) => <textarea id={id} rows={2} value={value} onInput={(event) => onText(event.currentTarget.value)} />}
    </Field>
  );
}
