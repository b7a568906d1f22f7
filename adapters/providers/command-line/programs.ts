/** A program that answers one prompt in lines of JSON. To support another program, add a row. */
export interface ProgramRow {
  readonly name: string
  readonly title: string
  readonly command: string
  /** The command that installs it. */
  readonly install: string
  /** The command with which a person signs in. */
  readonly signIn: string
  /** `default`: the model that is set in the program itself. */
  readonly defaultModel: string
  /**
   * Arguments that make it answer its standard input once, in lines of JSON, with its own tools, settings and memory
   * switched off as far as possible.
   */
  readonly args: readonly string[]
  /** Arguments that follow all others. */
  readonly lastArgs?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /**
   * How the system prompt is passed: in a file that a flag or a variable names. Absent: at the beginning of the prompt.
   */
  readonly instructions?: { readonly flag: string } | { readonly variable: string }
  /** Settings that override the user's, in a file that this variable names. */
  readonly settings?: { readonly variable: string; readonly content: object }
  readonly lines: 'claude' | 'codex' | 'gemini'
  /** Cached tokens are counted beside the input tokens and not among them. */
  readonly cacheBesideInput?: true
}

export const programs: readonly ProgramRow[] = [
  // Source: https://code.claude.com/docs/en/cli-reference, https://code.claude.com/docs/en/headless
  {
    name: 'claude-code',
    title: 'Claude Code',
    command: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    signIn: 'claude',
    defaultModel: 'sonnet',
    lines: 'claude',
    cacheBesideInput: true,
    args: [
      '-p',
      '--output-format',
      'stream-json',
      '--verbose',
      '--include-partial-messages',
      '--no-session-persistence',
      '--setting-sources',
      '',
      '--strict-mcp-config',
      '--disable-slash-commands',
      '--tools',
      '',
    ],
    env: { DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    instructions: { flag: '--system-prompt-file' },
  },
  // No flag that all versions know disables its shell: the feature is switched off, and versions without that feature
  // run in a read-only sandbox. Source: https://developers.openai.com/codex/noninteractive
  {
    name: 'codex-cli',
    title: 'Codex CLI',
    command: 'codex',
    install: 'npm install -g @openai/codex',
    signIn: 'codex login',
    defaultModel: 'default',
    lines: 'codex',
    args: [
      'exec',
      '--json',
      '--skip-git-repo-check',
      '--ephemeral',
      '--ignore-user-config',
      '--ignore-rules',
      '--color',
      'never',
      '--sandbox',
      'read-only',
      '-c',
      'features.shell_tool=false',
      '-c',
      'features.unified_exec=false',
    ],
    lastArgs: ['-'],
  },
  // Source: https://geminicli.com/docs/cli/headless, https://geminicli.com/docs/reference/configuration
  {
    name: 'gemini-cli',
    title: 'Gemini CLI',
    command: 'gemini',
    install: 'npm install -g @google/gemini-cli',
    signIn: 'gemini',
    defaultModel: 'default',
    lines: 'gemini',
    args: [
      '--output-format',
      'stream-json',
      '--approval-mode',
      'default',
      '--extensions',
      'none',
      '--allowed-mcp-server-names',
      'none',
    ],
    instructions: { variable: 'GEMINI_SYSTEM_MD' },
    settings: {
      variable: 'GEMINI_CLI_SYSTEM_SETTINGS_PATH',
      content: {
        tools: { core: ['none'] },
        security: { folderTrust: { enabled: false } },
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
      },
    },
  },
  // Source: https://qwenlm.github.io/qwen-code-docs/en/users/features/headless
  {
    name: 'qwen-code',
    title: 'Qwen Code',
    command: 'qwen',
    install: 'npm install -g @qwen-code/qwen-code',
    signIn: 'qwen',
    defaultModel: 'default',
    lines: 'claude',
    args: [
      '--output-format',
      'stream-json',
      '--include-partial-messages',
      '--approval-mode',
      'default',
      '--chat-recording=false',
      '--core-tools',
      'none',
      '--extensions',
      'none',
      '--allowed-mcp-server-names',
      'none',
    ],
  },
]
