/** Where one client runs, and the gateway that it asks. */
export interface Place {
  /** The gateway's address, without `/v1`. */
  readonly origin: string;
  readonly key: string;
  readonly model: string;
  readonly contextTokens: number;
  /** The folder that it works on. */
  readonly project: string;
  /** Its home, which is empty before `files` are written. */
  readonly home: string;
}

/** A call of one of the client's own tools. */
export interface ToolCall {
  readonly tool: string;
  readonly args: object;
}

/** A client's own tools, as a model calls them. */
interface OwnTools {
  read(file: string): ToolCall;
  write(file: string, text: string): ToolCall;
  edit(file: string, wrong: string, right: string): ToolCall;
  run(command: string): ToolCall;
  /** Shows a picture to the model. */
  look(file: string): ToolCall;
  /** Loads a tool that the client has not offered yet. */
  load?(): ToolCall;
}

/** A coding agent as its users start it, without a terminal. */
export interface CodingClient {
  readonly name: string;
  readonly package: string;
  /** The newest version when the recordings were made. A newer one may be tried by hand. */
  readonly version: string;
  readonly program: string;
  /** Its settings: files by their paths in its home, and variables. */
  settings(place: Place): {
    readonly files?: Readonly<Record<string, string>>;
    readonly env: Readonly<Record<string, string>>;
  };
  /** `goesOn` is true for a further task of the latest conversation. */
  args(task: string, goesOn: boolean): readonly string[];
  /**
   * A name that the client knows, for which it sends more than for a model of ours, such as messages with the tokens that
   * are left. A route of the gateway leads from it to the model.
   */
  readonly knownModel?: string;
  /** True if the front of its prompt lists the project's files. Each start of the client changes the list. */
  readonly listsFilesAtStart?: true;
  /** Fields of its requests that the gateway ignores and names in `x-trunkline-ignored`, as `pathsIn` gives them. */
  readonly ignored: readonly string[];
  readonly tools: OwnTools;
}

const openCode: CodingClient = {
  name: "OpenCode",
  package: "opencode-ai",
  version: "1.18.33",
  program: "opencode",
  ignored: [],
  settings({ origin, key, model, contextTokens, home }) {
    const sees = { attachment: true, modalities: { input: ["text", "image"], output: ["text"] } };
    const models = { [model]: { tool_call: true, ...sees, limit: { context: contextTokens, output: 8_192 } } };
    const options = { baseURL: `${origin}/v1`, apiKey: key };
    const provider = { trunkline: { npm: "@ai-sdk/openai-compatible", name: "Trunkline", options, models } };
    const config = { provider, model: `trunkline/${model}`, autoupdate: false, share: "disabled" };
    return {
      files: { "opencode.json": JSON.stringify(config) },
      env: { OPENCODE_CONFIG: `${home}/opencode.json`, OPENCODE_DISABLE_MODELS_FETCH: "1" },
    };
  },
  args: (task, goesOn) => ["run", "--print-logs", ...(goesOn ? ["--continue"] : []), task],
  tools: {
    read: (filePath) => ({ tool: "read", args: { filePath } }),
    write: (filePath, content) => ({ tool: "write", args: { content, filePath } }),
    edit: (filePath, oldString, newString) => ({ tool: "edit", args: { filePath, oldString, newString } }),
    run: (command) => ({ tool: "bash", args: { command, description: "Count words" } }),
    look: (filePath) => ({ tool: "read", args: { filePath } }),
  },
};

const seesImages = { generationConfig: { modalities: { image: true } } };

const qwenCode: CodingClient = {
  name: "Qwen Code",
  package: "@qwen-code/qwen-code",
  version: "0.24.4",
  program: "qwen",
  listsFilesAtStart: true,
  ignored: [],
  settings: ({ origin, key, model }) => ({
    // Its terminal emulation loses the output of a short command now and then.
    files: {
      ".qwen/settings.json": JSON.stringify({
        privacy: { usageStatisticsEnabled: false },
        tools: { shell: { enableInteractiveShell: false } },
        modelProviders: { openai: [{ id: model, baseUrl: `${origin}/v1`, envKey: "OPENAI_API_KEY", ...seesImages }] },
      }),
    },
    env: { OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_KEY: key, OPENAI_MODEL: model },
  }),
  args: (task, goesOn) => [
    "--auth-type",
    "openai",
    "--approval-mode",
    "yolo",
    ...(goesOn ? ["--continue"] : []),
    "--prompt",
    task,
  ],
  tools: {
    read: (file_path) => ({ tool: "read_file", args: { file_path } }),
    write: (file_path, content) => ({ tool: "write_file", args: { file_path, content } }),
    edit: (file_path, old_string, new_string) => ({ tool: "edit", args: { file_path, old_string, new_string } }),
    run: (command) => ({ tool: "run_shell_command", args: { command, is_background: false } }),
    look: (file_path) => ({ tool: "read_file", args: { file_path } }),
  },
};

export const codex: CodingClient = {
  name: "Codex CLI",
  package: "@openai/codex",
  version: "0.169.0",
  program: "codex",
  ignored: ["client_metadata", "include[]", "prompt_cache_key", "tools[]"],
  settings({ origin, key, model, contextTokens }) {
    const lines = [
      `model = ${JSON.stringify(model)}`,
      'model_provider = "trunkline"',
      `model_context_window = ${contextTokens}`,
      "[model_providers.trunkline]",
      'name = "Trunkline"',
      `base_url = ${JSON.stringify(`${origin}/v1`)}`,
      'env_key = "TRUNKLINE_API_KEY"',
      'wire_api = "responses"',
    ];
    return { files: { ".codex/config.toml": `${lines.join("\n")}\n` }, env: { TRUNKLINE_API_KEY: key } };
  },
  args(task, goesOn) {
    const resumed = goesOn ? ["resume", "--last"] : [];
    return ["exec", ...resumed, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task];
  },
  // A model that Codex does not know has a shell and no tool for files.
  tools: {
    read: (file) => ({ tool: "exec_command", args: { cmd: `cat ${file}` } }),
    write: (file, text) => ({ tool: "exec_command", args: { cmd: `cat > ${file} <<'END'\n${text}END` } }),
    edit: (file, wrong, right) => ({ tool: "exec_command", args: { cmd: `sed -i s/${wrong}/${right}/ ${file}` } }),
    run: (cmd) => ({ tool: "exec_command", args: { cmd } }),
    look: (path) => ({ tool: "view_image", args: { path } }),
  },
};

export const claudeCode: CodingClient = {
  name: "Claude Code",
  package: "@anthropic-ai/claude-code",
  version: "2.1.330",
  program: "claude",
  knownModel: "claude-haiku-5-5",
  ignored: [
    "anthropic-beta",
    "context_management",
    "messages[].content[].cache_control",
    "metadata",
    "system[].cache_control",
    "thinking.display",
    "x-anthropic-billing-header",
  ],
  settings: ({ origin, key, model }) => ({
    env: {
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
  }),
  args: (task, goesOn) => [
    "--print",
    task,
    "--permission-mode",
    "acceptEdits",
    "--allowedTools",
    "Bash",
    ...(goesOn ? ["--continue"] : []),
  ],
  tools: {
    read: (file_path) => ({ tool: "Read", args: { file_path } }),
    write: (file_path, content) => ({ tool: "Write", args: { file_path, content } }),
    edit: (file_path, old_string, new_string) => ({ tool: "Edit", args: { file_path, old_string, new_string } }),
    run: (command) => ({ tool: "Bash", args: { command, description: "Count words" } }),
    look: (file_path) => ({ tool: "Read", args: { file_path } }),
    load: () => ({ tool: "ToolSearch", args: { query: "select:WebFetch" } }),
  },
};

/** The paths in several values of `x-trunkline-ignored`: each once, sorted, without the places in lists. */
export function pathsIn(lists: readonly string[]): string[] {
  const paths = lists.flatMap((list) => list.replaceAll(/\[\d+\]/g, "[]").split(","));
  return [...new Set(paths.filter((path) => path !== ""))].toSorted();
}

export const codingClients: readonly CodingClient[] = [openCode, qwenCode, codex, claudeCode];
